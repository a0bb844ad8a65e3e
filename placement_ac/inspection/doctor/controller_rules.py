"""
Rules for our controller: it runs, once, with known settings and with its rights.

Pure.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from placement_ac.core.api.constants import KUEUE, LEASE, MANAGED_BY
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.schemas import as_mapping, parse_time
from placement_ac.core.api.text import joined
from placement_ac.inspection.doctor.finding import RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.rbac import missing_permissions, rules_of
from placement_ac.inspection.doctor.setup import HubSetup, hub_rule, name_of, pod_of, ready, sequence, spec_of
from placement_ac.inspection.hub.controller_settings import deployments
from placement_ac.inspection.hub.dump import Object, key_of
from placement_ac.inspection.hub.kinds import (
    CLUSTER_QUEUE,
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    DEPLOYMENT,
)

INSTALL: Final = "kubectl apply -k config/default"
NEEDED: Final = {
    "admissionchecks": ("list", "watch"),
    "admissionchecks/status": ("patch",),
    "multikueueconfigs": ("list", "watch", "create", "patch", "delete"),
    "multikueueclusters": ("list", "watch", "create", "patch", "delete"),
    "workloads": ("list", "watch"),
    "workloads/status": ("patch",),
}
"""The verbs that the controller needs on Kueue's kinds with any settings: as in config/rbac."""
SKEW: Final = timedelta(seconds=60)
"""Tolerated difference between the clocks of two machines."""


@hub_rule(
    "controller",
    "the controller runs: its Deployment has a ready Pod, or its Lease is held",
    f"{INSTALL} && kubectl rollout status -n CONTROLLER deployment/{MANAGED_BY}",
)
def controller(setup: HubSetup) -> Iterator[RuleResult]:
    running = [one for one in deployments(setup.dump) if ready(one)]
    holder = _holder(setup)
    if running or holder:
        message = (
            f"Deployment {_label(running[0])} has {ready(running[0])} ready" if running else f"{holder} leads"
        )
        if running and not holder and _lease_is_known(setup) and setup.settings.leader_elect:
            fix = f"kubectl logs {_at(running[0])} --all-pods --tail=50"
            yield warn(f"{message}, but none holds Lease {_lease_label(setup)}", fix)
        yield ok(message)
        return
    if unknown := _unknown(setup):
        yield from unknown
        return
    listing = _listing(setup)
    message = f"no controller runs, and ClusterQueue {joined(listing)} lists our check: its jobs wait"
    if listing:
        yield fail(message, _start(setup))
    else:
        yield warn("no controller runs", _start(setup))


@hub_rule(
    "controller-settings",
    "the controller's settings can be read",
    "kubectl auth can-i list configmaps -n CONTROLLER",
)
def controller_settings(setup: HubSetup) -> Iterator[RuleResult]:
    namespace = setup.controller.partition("/")[0]
    message = f"unknown, so the defaults are assumed: {setup.settings_problem}"
    if setup.given:
        yield ok("the settings given on the command line")
    elif not setup.controller:
        yield from setup.unknown_results(DEPLOYMENT, namespaces=[setup.controller_namespace])
        yield ok("there is no Deployment of the controller: the defaults are assumed")
    elif not setup.settings_problem:
        yield ok(f"the settings of Deployment {setup.controller}")
    elif right := setup.missing_right(CONFIG_MAP, namespace):
        yield warn(message, right.check_command)
    else:
        yield warn(
            message,
            f"kubectl get configmap -n {namespace} {MANAGED_BY} -o yaml",
        )


@hub_rule(
    "one-controller",
    "one Deployment of the controller serves this Kueue",
    "kubectl scale -n NAMESPACE deployment/NAME --replicas=0",
)
def one_controller(setup: HubSetup) -> Iterator[RuleResult]:
    running = sorted((one for one in deployments(setup.dump) if _wanted(one)), key=_order(setup))
    for one in running[1:]:
        yield warn(
            f"Deployment {_label(one)} also runs the controller, beside {_label(running[0])}: keep one",
            f"kubectl scale {_at(one)} --replicas=0",
        )
    if not setup.knows(DEPLOYMENT):
        yield from setup.unknown_results(DEPLOYMENT)
    yield ok(f"Deployment {_label(running[0])} alone" if running else "there is none")


@hub_rule(
    "controller-rights",
    "ClusterRoles give the controller's ServiceAccount its rights",
    f"kubectl create clusterrolebinding NAME --clusterrole={MANAGED_BY} --serviceaccount=ACCOUNT",
)
def controller_rights(setup: HubSetup) -> Iterator[RuleResult]:
    found = next(iter(deployments(setup.dump)), None)
    if found is None:
        yield ok("there is no Deployment of the controller")
        return
    if unknown := setup.unknown_results(CLUSTER_ROLE, CLUSTER_ROLE_BINDING):
        yield from unknown
        return
    namespace, _ = key_of(found)
    account = str(pod_of(found).get("serviceAccountName") or "default")
    missing = missing_permissions(rules_of(setup, namespace, account), KUEUE, NEEDED)
    who = f"ServiceAccount {namespace}/{account}, the controller's"
    if missing:
        yield fail(f"{who}, may not {joined(missing, '; ')}", _bind(setup, namespace, account))
    else:
        yield ok(f"{who}, has its rights")


def _bind(setup: HubSetup, namespace: str, account: str) -> str:
    """Return the command that binds our ClusterRole to the account, or installs a complete ClusterRole."""
    role = setup.dump.find(CLUSTER_ROLE, MANAGED_BY) or {}
    if missing_permissions(map(as_mapping, sequence(role.get("rules"))), KUEUE, NEEDED):
        return INSTALL
    name = MANAGED_BY
    while setup.dump.find(CLUSTER_ROLE_BINDING, name):
        name += f"-{namespace}"
    return (
        f"kubectl create clusterrolebinding {name} --clusterrole={MANAGED_BY} "
        f"--serviceaccount={namespace}:{account}"
    )


def _unknown(setup: HubSetup) -> tuple[RuleResult, ...]:
    """Return a warning if it is unknown whether a controller runs."""
    if deployments(setup.dump):
        return ()
    spaces = [_lease_namespace(setup)] if setup.dump.live else []
    pods = setup.unknown_results(DEPLOYMENT, namespaces=[setup.controller_namespace])
    return pods or setup.unknown_results(LEASE, namespaces=spaces)


def _start(setup: HubSetup) -> str:
    there = next(iter(deployments(setup.dump)), None)
    if there is None:
        wait = f"kubectl rollout status -n {setup.controller_namespace} deployment/{MANAGED_BY}"
        return f"{INSTALL} && {wait}"
    if not _wanted(there):
        return f"kubectl scale {_at(there)} --replicas=2"
    return f"kubectl rollout restart {_at(there)} && kubectl rollout status {_at(there)}"


def _listing(setup: HubSetup) -> list[str]:
    """Return the ClusterQueues that list a check of ours."""
    ours = {one.meta.name for one in setup.view.our_checks}
    return sorted(name_of(one) for one in setup.dump.of(CLUSTER_QUEUE) if ours & checks_listed(one))


def _lease_namespace(setup: HubSetup) -> str:
    return setup.settings.leader_elect_resource_namespace or setup.kueue_namespace


def _lease_label(setup: HubSetup) -> str:
    return f"{_lease_namespace(setup)}/{setup.settings.leader_elect_resource_name}"


def _lease_is_known(setup: HubSetup) -> bool:
    return setup.knows(LEASE, _lease_namespace(setup))


def _holder(setup: HubSetup) -> str:
    """Return the holder of the Lease; in a dump, its holder at that time."""
    found = setup.dump.find(LEASE, setup.settings.leader_elect_resource_name, _lease_namespace(setup))
    spec = spec_of(found)
    seconds = spec.get("leaseDurationSeconds")
    renewed = parse_time(str(spec.get("renewTime")))
    holder = str(spec.get("holderIdentity") or "")
    if not holder or not setup.dump.live:
        return holder
    good = timedelta(seconds=seconds if isinstance(seconds, int) else 0) + SKEW
    return holder if renewed and setup.view.now - renewed < good else ""


def _wanted(deployment: Object) -> bool:
    return bool(spec_of(deployment).get("replicas", 1))


def _order(setup: HubSetup) -> Callable[[Object], tuple[bool, str]]:
    """Return the sort key that puts the Deployment whose settings are in use first."""
    return lambda one: (_label(one) != setup.controller, _label(one))


def _label(deployment: Object) -> str:
    return "/".join(key_of(deployment))


def _at(deployment: Object) -> str:
    namespace, name = key_of(deployment)
    return f"-n {namespace} deployment/{name}"


RULES: Final = (controller, controller_settings, one_controller, controller_rights)
