"""Rules for our controller: it runs, once, with known settings and with its rights. Pure."""

import shlex
from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok, skip, warn
from kubectl_placement.doctor.rbac import missing_permissions, rules_of
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub import kinds
from kubectl_placement.hub.controller_settings import (
    deployments,
    has_our_label,
    installed_by_helm,
)
from kubectl_placement.hub.controller_state import ControllerState, controller_state, lease_key
from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import (
    CLUSTER_QUEUE,
    DEPLOYMENT,
    KUEUE,
    LABEL_APP_NAME,
    LEASE,
    MANAGED_BY,
)
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.fields import Obj, get_dict, get_int, get_list, get_str, key_of, name_of
from placement_ac.core.api.text import joined

FIND: Final = f"kubectl get deployments -A -l {LABEL_APP_NAME}={MANAGED_BY}"
INSTALL: Final = "kubectl apply -k OVERLAY  # your own overlay, or the chart: docs/install.md"
"""The admin chooses the modes, so no overlay is named: the default one may not be wanted."""
INSTALL_ROLE: Final = "kubectl apply -f config/rbac/clusterrole.yaml"
"""The ClusterRole alone: the rest of the installation may be another overlay."""
UPGRADE: Final = "helm upgrade {} charts/placement-ac -n {} --reuse-values"
"""The same for a Helm release: its ClusterRole has the release's name."""
NEEDED: Final = {
    "admissionchecks": ("list", "watch"),
    "admissionchecks/status": ("patch",),
    "multikueueconfigs": ("list", "watch", "create", "patch", "delete"),
    "multikueueclusters": ("list", "watch", "create", "patch", "delete"),
    "workloads": ("list", "watch"),
    "workloads/status": ("patch",),
}
"""The verbs that the controller needs on Kueue's kinds with any settings: as in config/rbac."""
_NO_DEPLOYMENT: Final = skip("there is no Deployment of the controller")


@hub_rule(
    "controller",
    "the controller runs: its Deployment has a ready Pod, or its Lease is held",
    INSTALL,
)
def controller(setup: HubSetup) -> Iterator[Finding]:
    running = next((deployment for deployment in deployments(setup.dump) if _ready(deployment)), None)
    state = controller_state(setup.view)
    holder = state.leader if state.running else ""
    namespace, _ = lease_key(setup.settings)
    if running:
        message = f"Deployment {_label(running)} has {_ready(running)} ready"
        if not holder and setup.knows(LEASE, namespace) and setup.settings.leader_elect:
            fix = f"kubectl logs {_words(running)} --all-pods --tail=50"
            yield warn(f"{message}, but {_lost(setup, state)}", fix)
        yield ok(message)
    elif holder:
        yield ok(f"{holder} leads")
    elif unknown := _unknown(setup):
        yield from unknown
    elif listing := joined(_listing(setup)):
        message = f"no controller runs ({_lost(setup, state)}), and ClusterQueue {listing} lists our check"
        yield fail(f"{message}: its jobs wait", _start(setup))
    else:
        yield warn(f"no controller runs ({_lost(setup, state)}), and no ClusterQueue needs it", _show(setup))


@hub_rule(
    "one-controller",
    "one Deployment of the controller serves this Kueue",
    "kubectl scale -n NAMESPACE deployment/NAME --replicas=0",
)
def one_controller(setup: HubSetup) -> Iterator[Finding]:
    wanted = filter(_is_wanted, deployments(setup.dump))
    # The Deployment whose settings are in use is first.
    running = sorted(wanted, key=lambda obj: (_label(obj) != setup.controller, _label(obj)))
    for obj in running[1:]:
        yield warn(
            f"Deployment {_label(obj)} also runs the controller, beside {_label(running[0])}: keep one",
            f"kubectl scale {_words(obj)} --replicas=0",
        )
    yield from setup.unknown(DEPLOYMENT)
    yield ok(f"Deployment {_label(running[0])} alone") if running else _NO_DEPLOYMENT


@hub_rule(
    "controller-rights",
    "ClusterRoles give the controller's ServiceAccount its rights",
    "kubectl create clusterrolebinding NAME --clusterrole=ROLE --serviceaccount=ACCOUNT",
)
def controller_rights(setup: HubSetup) -> Iterator[Finding]:
    deployment = next(iter(deployments(setup.dump)), None)
    if deployment is None:
        yield _NO_DEPLOYMENT
        return
    if unknown := setup.unknown(kinds.CLUSTER_ROLE, kinds.CLUSTER_ROLE_BINDING):
        yield from unknown
        return
    namespace, _ = key_of(deployment)
    account = get_str(deployment, "spec", "template", "spec", "serviceAccountName") or "default"
    missing = missing_permissions(rules_of(setup.dump, namespace, account), KUEUE, NEEDED)
    subject = f"ServiceAccount {namespace}/{account}, the controller's"
    if missing:
        yield fail(f"{subject}, may not {joined(missing, '; ')}", _bind(setup, deployment, account))
    else:
        yield ok(f"{subject}, has its rights")


def _bind(setup: HubSetup, deployment: Object, account: str) -> str:
    """Return the command that binds our ClusterRole to the account, or installs a complete ClusterRole."""
    namespace, _ = key_of(deployment)
    role = _our_role(setup, deployment)
    if not role:
        release = installed_by_helm(deployment)
        return UPGRADE.format(shlex.quote(release), namespace) if release else INSTALL_ROLE
    name = role
    while setup.dump.find(kinds.CLUSTER_ROLE_BINDING, name):
        name += f"-{namespace}"
    return (
        f"kubectl create clusterrolebinding {shlex.quote(name)} --clusterrole={shlex.quote(role)} "
        f"--serviceaccount={namespace}:{account}"
    )


def _our_role(setup: HubSetup, deployment: Object) -> str:
    """Return the ClusterRole with all rights that has our labels or a name of ours; "" if there is none.

    That of the Deployment's own name comes first: the overlays and the chart name them alike.
    """
    names = (name_of(deployment), MANAGED_BY)
    roles = [
        role for role in setup.dump.of(kinds.CLUSTER_ROLE) if has_our_label(role) or name_of(role) in names
    ]
    complete = {
        name_of(role) for role in roles if not missing_permissions(get_list(role, "rules"), KUEUE, NEEDED)
    }
    return next((name for name in (*names, *sorted(complete)) if name in complete), "")


def _lost(setup: HubSetup, state: ControllerState) -> str:
    """Return what the Lease says if nobody leads by it."""
    name = "/".join(lease_key(setup.settings))
    if state.renewed is None:
        return f"none holds Lease {name}"
    since = f"{state.renewed:%Y-%m-%dT%H:%M:%SZ}"
    if state.leader:
        return f"{state.leader} has not renewed Lease {name} since {since}"
    return f"none holds Lease {name} since {since}"


def _unknown(setup: HubSetup) -> tuple[Finding, ...]:
    """Return a warning if it is unknown whether a controller runs."""
    if deployments(setup.dump):
        return ()
    spaces = [lease_key(setup.settings)[0]] if setup.dump.live else []
    pods = setup.unknown(DEPLOYMENT, namespaces=[setup.controller_namespace])
    return pods or setup.unknown(LEASE, namespaces=spaces)


def _show(setup: HubSetup) -> str:
    """Return the command that starts the controller, or that shows that none is installed."""
    nowhere = not deployments(setup.dump) and not setup.is_embedded
    return FIND if nowhere else _start(setup)


def _start(setup: HubSetup) -> str:
    deployment = next(iter(deployments(setup.dump)), None)
    if setup.is_embedded:
        return "placement-ac run"
    if deployment is None:
        return INSTALL
    where = _words(deployment)
    if not _is_wanted(deployment):
        return f"kubectl scale {where} --replicas=2"
    return f"kubectl rollout restart {where} && kubectl rollout status {where}"


def _listing(setup: HubSetup) -> list[str]:
    """Return the ClusterQueues that list a check of ours."""
    ours = {check.meta.name for check in setup.view.our_checks}
    return sorted(name_of(queue) for queue in setup.dump.of(CLUSTER_QUEUE) if ours & checks_listed(queue))


def _ready(deployment: Obj) -> int:
    """Return the number of ready Pods."""
    return get_int(deployment, "status", "readyReplicas") or 0


def _is_wanted(deployment: Obj) -> bool:
    return bool(get_dict(deployment, "spec").get("replicas", 1))


def _label(deployment: Object) -> str:
    return "/".join(key_of(deployment))


def _words(deployment: Object) -> str:
    """Return kubectl's words for a Deployment."""
    namespace, name = key_of(deployment)
    return f"-n {namespace} deployment/{name}"


RULES: Final = (controller, one_controller, controller_rights)
