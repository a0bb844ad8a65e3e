"""
The rule for the set-up of workers: whether OCM has put onto each what the jobs of the hub need there.

Pure. OCM's reports say it: no worker is asked.
"""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, Kubectl
from kubectl_placement.doctor.finding import Finding, fail, ok, skip, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CONFIG_MAP,
    DEPLOYMENT,
    KUEUE_MANAGER,
    MANAGED_CLUSTER,
    MANIFEST_WORK,
    OCM_WORK,
    SETUP_NAME,
    TEMPLATE_KEY,
)
from placement_ac.core.api.objects import ManifestKey
from placement_ac.core.api.text import count_text
from placement_ac.core.decisions import SOURCE
from placement_ac.core.inputs.fitness import tag_of
from placement_ac.core.inputs.rights import parse_release
from placement_ac.core.worker_setup.manifests import IMAGE
from placement_ac.core.worker_setup.readiness import NotReady, SetupState

AGENT_NAMESPACE: Final = "open-cluster-management-agent"
"""The namespace of OCM's agents on a worker."""


def _unknown(setup: HubSetup) -> tuple[Finding, ...]:
    if setup.settings.worker_setup == "none":
        return ()
    decisions = setup.unknown(SOURCE.kind, namespaces=setup.placement_namespaces)
    return decisions or setup.unknown(MANIFEST_WORK, MANAGED_CLUSTER)


@hub_rule(
    "worker-setup",
    "if the controller sets workers up, OCM has put onto each selected one what the hub's jobs need there",
    f"kubectl --context CLUSTER get pods -n {AGENT_NAMESPACE}",
    ADMISSION_CHECK,
    unknown=_unknown,
)
def worker_setup(setup: HubSetup) -> Iterator[Finding]:
    if setup.settings.worker_setup == "none":
        yield skip("the controller sets up no workers")
        return
    ready: set[str] = set()
    for placement in setup.checks_by_placement:
        selection = setup.view.targets(placement).selection
        for cluster in setup.view.snapshot(placement).credentials.selected:
            state = setup.view.cache.setups.state(cluster)
            title = f"cluster {cluster} of Placement {placement}"
            if state.problem and selection.left_out.get(cluster) == state.problem:
                level = warn if selection.listable else fail
                message, about = f"{title} is left out: {state.problem}", f"Placement {placement}"
                yield level(message, _fix(setup, cluster, state), about, cluster=cluster)
            elif state.problem:
                message = f"{title} stays listed, but: {state.problem}"
                yield warn(message, _fix(setup, cluster, state), cluster=cluster)
            else:
                ready.add(cluster)
            yield from _kueue(setup, cluster)
            if state.others:
                yield warn(f"{title}: {state.remarks[0]}", _see(cluster, *state.others), cluster=cluster)
    yield ok(f"{count_text(len(ready), 'selected worker')} ready for jobs")


def _kueue(setup: HubSetup, cluster: str) -> Iterator[Finding]:
    """Yield that a worker has an older Kueue than the hub, by the image that OCM reports."""
    work = setup.view.cache.setup_inputs(cluster, setup.view.now).work
    state = work.states.get((DEPLOYMENT.kind, setup.kueue_namespace, KUEUE_MANAGER)) if work else None
    image = str(state.values.get(IMAGE, "")) if state else ""
    hub, release = setup.kueue.release, parse_release(tag_of(image))
    if release and hub and release[:2] < hub[:2]:
        message = f"{cluster}: Kueue {release} there is older than {hub} on the hub"
        yield warn(message, Kubectl(cluster).install_kueue(hub), cluster=cluster)


def _fix(setup: HubSetup, cluster: str, state: SetupState) -> str:
    """Return the command for the reason that a worker is not ready."""
    worker, describe = Kubectl(cluster), ("describe", "manifestwork", "-n", cluster, SETUP_NAME)
    match state.why:
        case NotReady.NO_WORK_API:
            return HUB.run("api-resources", f"--api-group={OCM_WORK}")
        case NotReady.NO_MANAGED_CLUSTER:
            return HUB.run("get", "managedcluster", cluster)
        case NotReady.TEMPLATE:
            return _edit(setup, state.about)
        case NotReady.NO_REPORT:
            return worker.run("get", "pods", "-n", AGENT_NAMESPACE)
        case NotReady.NO_KUEUE:
            return worker.install_kueue(setup.kueue.release)
        case NotReady.NOT_ACTIVE if state.about:
            return worker.run("describe", *_named(state.about))
        case _:
            return HUB.run(*describe)


def _edit(setup: HubSetup, template: ManifestKey | None) -> str:
    """Return the command that corrects a template, creates it, or shows the hub's queues."""
    if template is None:
        return HUB.run("get", "clusterqueues,resourceflavors", "-o", "yaml")
    _, namespace, name = template
    if setup.dump.find(CONFIG_MAP, name, namespace):
        return HUB.run("edit", "configmap", "-n", namespace, name)
    return HUB.run("create", "configmap", "-n", namespace, name, f"--from-file={TEMPLATE_KEY}")


def _see(cluster: str, *keys: ManifestKey) -> str:
    """Return the commands that show who has set these objects on a worker."""
    worker, shown = Kubectl(cluster), ("-o", "yaml", "--show-managed-fields")
    return "\n".join(worker.run("get", *_named(key), *shown) for key in keys)


def _named(key: ManifestKey) -> tuple[str, ...]:
    kind, namespace, name = key
    return (kind.lower(), *(("-n", namespace) if namespace else ()), name)


RULES: Final = (worker_setup,)
