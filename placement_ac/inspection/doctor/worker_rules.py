"""
Rules that check the setup of each worker for the jobs that the hub sends there.

Pure. For a worker that could not be inspected, only `worker-access` has a finding.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    CONDITION_ACTIVE,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    SECRET,
)
from placement_ac.core.api.text import joined
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.fitness import Unknown, missing_kinds, missing_queues
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.inspection.doctor import worker_fixes as fixes
from placement_ac.inspection.doctor.crds import KUEUE_MANIFESTS
from placement_ac.inspection.doctor.finding import DoctorRule, Finding, RuleResult, fail, ok, warn
from placement_ac.inspection.doctor.inspected_worker import (
    FROM_HUB,
    InspectedWorker,
    worker_needs,
    worker_policy,
)
from placement_ac.inspection.doctor.setup import HubSetup, condition_of, labels_of, spec_of
from placement_ac.inspection.doctor.worker_inspection import (
    AccessProblem,
    ExpectedQueue,
    WorkerInspection,
    flavors_of,
    is_valid_name,
)
from placement_ac.inspection.hub.dump import MissingRight, Object
from placement_ac.inspection.hub.kinds import (
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    NAMESPACE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
)

FORBIDDEN: Final = 403
READS: Final = (
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
    {
        "apiGroups": ["kueue.x-k8s.io"],
        "resources": ["clusterqueues", "localqueues", "resourceflavors", "topologies"],
        "verbs": ["list"],
    },
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
)
"""The rights that an inspection needs beside those of MultiKueue."""
_REASON: Final = re.compile(r"[A-Za-z]{1,64}")
STOPPED: Final = "Stopped"
"""Kueue: the reason of a ClusterQueue with a stopPolicy."""


def access(worker: InspectedWorker) -> Iterator[RuleResult]:
    visit, target = worker.inspection, worker.target
    if visit.access_problem is None:
        yield ok(f"it answers, with the credentials of {_credential_label(worker)}")
    elif visit.access_problem is AccessProblem.NO_RIGHT:
        kind = CLUSTER_PROFILE if _source(worker).kind == "ClusterProfile" else SECRET
        right = MissingRight("get", kind, worker.setup.kueue_namespace)
        yield warn(f"not inspected: the right to {right} is missing", right.check_command)
    elif visit.access_problem is AccessProblem.NO_PLUGIN:
        yield warn(
            f"not inspected: no plugin is configured here for ClusterProfile {_source(worker).name}",
            f"{_run_again(worker)} --access-providers FILE",
        )
    elif visit.access_problem is AccessProblem.UNREACHABLE:
        yield fail(
            f"{visit.problem}: if it answers you, the address in the hub's credentials or the network between"
            " Kueue and it is wrong",
            fixes.kubectl(target.cluster, "get", "--raw", "/readyz"),
        )
    else:
        yield fail(visit.problem, _renew_credentials(worker))


def _renew_credentials(worker: InspectedWorker) -> str:
    """Return the command that renews the credentials, or that shows why they are not renewed."""
    namespace, cluster, credential = worker.setup.kueue_namespace, worker.cluster, _source(worker)
    if credential.kind == "ClusterProfile":
        return shlex.join(
            ("kubectl", "get", "clusterprofile", "-n", namespace, credential.name, "-o", "yaml")
        )
    if (
        labels_of(worker.setup.dump.find(SECRET, credential.name, namespace)).get(LABEL_MANAGED_BY)
        == MANAGED_BY
    ):
        account = worker.setup.settings.credentials_account
        return shlex.join(("kubectl", "describe", "managedserviceaccount", "-n", cluster, account))
    return fixes.put_secret(namespace, credential.name, cluster)


def _run_again(worker: InspectedWorker) -> str:
    return shlex.join(("placement-ac", "doctor", "--workers", "--cluster", worker.cluster))


def _source(worker: InspectedWorker) -> CredentialSource:
    credential = worker.target.credential
    return (
        credential
        if isinstance(credential, CredentialSource)
        else CredentialSource("Secret", f"multikueue-{worker.cluster}")
    )


def _credential_label(worker: InspectedWorker) -> str:
    source = _source(worker)
    return f"{source.kind} {worker.setup.kueue_namespace}/{source.name}"


def kueue(worker: InspectedWorker) -> Iterator[RuleResult]:
    if worker.found is None:
        return
    hub = worker.setup.kueue_release
    problems = tuple(fitness.workload_problems(worker.found, worker.requirements))
    for problem in problems:
        yield fail(problem, fixes.install_kueue(worker.cluster, hub))
    here = worker.release
    if not problems and here and hub and here[:2] < hub[:2]:
        yield warn(
            f"Kueue {here} there is older than {hub} on the hub", fixes.install_kueue(worker.cluster, hub)
        )
    release = here or "of an unknown release"
    yield ok(f"Kueue {release} runs, with Workloads {worker.requirements.version}")


def jobs(worker: InspectedWorker) -> Iterator[RuleResult]:
    if worker.found is None:
        return
    names = [f"{kind.plural}.{kind.group}" for kind in missing_kinds(worker.found, worker.requirements.kinds)]
    for problem in fitness.kind_problems(worker.found, worker.requirements.kinds):
        yield fail(
            f"{problem}; the CRD lets Kueue connect, and the controller of the kind runs the jobs",
            fixes.copy_crds(worker.cluster, names),
        )
    yield ok("it serves the job kinds that the hub's Kueue sends")


def rights(worker: InspectedWorker) -> Iterator[RuleResult]:
    if worker.found is None:
        return
    for problem in fitness.rights_problems(worker.found, worker.requirements.rights):
        yield fail(problem, fixes.grant(worker.cluster, fixes.SENDER, worker.inspection.user, worker.rules))
    yield ok("the account has the rights that MultiKueue needs")


def reads(worker: InspectedWorker) -> Iterator[RuleResult]:
    if worker.found is None:
        return
    message = [kind.plural for kind, answer in worker.unknown.items() if answer.status == FORBIDDEN]
    release = worker.found.kueue_version
    if isinstance(release, Unknown) and release.status == FORBIDDEN:
        message.append("the release of Kueue")
    if message:
        yield warn(
            f"unknown, because the account of {worker.found.account} may not read it: {', '.join(message)}",
            fixes.grant(worker.cluster, fixes.READER, worker.inspection.user, READS),
        )
    others = [answer.why for answer in worker.unknown.values() if answer.status != FORBIDDEN]
    others += [*fitness.unknowns(replace(worker.found, kueue_version=""))]
    for why in dict.fromkeys(others):
        yield warn(f"unknown: {why}", _run_again(worker))
    yield ok("everything could be read")


def namespaces(worker: InspectedWorker) -> Iterator[RuleResult]:
    if not worker.knows(NAMESPACE):
        return
    away, _ = missing_queues(worker.inspection.present_queues, worker.target.expected_queues)
    if away:
        made = [fixes.manifest(NAMESPACE, "v1", name, {}) for name in away]
        queues = [_local_queue(worker, one) for one in worker.target.queues if one.namespace in away]
        yield fail(
            f"namespaces {joined(away)} are missing: their jobs cannot run there",
            fixes.apply(worker.cluster, *made, *queues),
        )
    yield ok(f"namespaces {joined(sorted(worker.target.expected_queues)) or '(none needed)'}")


def queues(worker: InspectedWorker) -> Iterator[RuleResult]:
    if not worker.knows(LOCAL_QUEUE):
        return
    _, missing = missing_queues(worker.inspection.present_queues, worker.target.expected_queues)
    if missing:
        made = [
            _local_queue(worker, one) for one in worker.target.queues if (one.namespace, one.name) in missing
        ]
        message = joined(f"{namespace}/{name}" for namespace, name in missing)
        yield fail(
            f"LocalQueues {message} are missing: their jobs cannot run there",
            fixes.apply(worker.cluster, *made),
        )
    names = (f"{one.namespace}/{one.name}" for one in worker.target.queues)
    yield ok(f"LocalQueues {joined(names) or '(none needed)'}")


def _local_queue(worker: InspectedWorker, wanted: ExpectedQueue) -> Object:
    spec = {"clusterQueue": worker.cluster_queue_for(wanted)}
    return fixes.manifest(LOCAL_QUEUE, worker.version(LOCAL_QUEUE), wanted.name, spec, wanted.namespace)


def cluster_queues(worker: InspectedWorker) -> Iterator[RuleResult]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE):
        return
    there = worker.objects_of(CLUSTER_QUEUE)
    for name, wanted in worker.in_use.items():
        if ("", name) not in there:
            local = f"{wanted.namespace}/{wanted.name}"
            yield fail(
                f"LocalQueue {local} uses ClusterQueue {name}, which does not exist",
                _make_queue(worker, name, wanted),
            )
    for name, queue, _ in worker.cluster_queues():
        yield from _activity(worker, name, queue)
    yield ok(f"ClusterQueues {joined(worker.in_use) or '(none needed)'} are active")


def _make_queue(worker: InspectedWorker, name: str, wanted: ExpectedQueue) -> str:
    hub = worker.setup.dump.find(CLUSTER_QUEUE, wanted.cluster_queue) or {}
    version = worker.version(CLUSTER_QUEUE)
    return fixes.apply(
        worker.cluster, fixes.manifest(CLUSTER_QUEUE, version, name, fixes.without_checks(hub))
    )


def _activity(worker: InspectedWorker, name: str, queue: Object) -> Iterator[RuleResult]:
    condition = condition_of(queue, CONDITION_ACTIVE)
    if condition.get("status") == "True" or _lacks(worker, queue):
        return
    reason = str(condition.get("reason") or "")
    if not condition:
        yield warn(f"Kueue has not reconciled ClusterQueue {name} yet", _describe(worker, name))
    elif reason == STOPPED:
        patch = fixes.patch(worker.cluster, "clusterqueue", name, {"stopPolicy": "None"})
        yield fail(f"ClusterQueue {name} is stopped", patch)
    else:
        message = f" ({reason})" if _REASON.fullmatch(reason) else ""
        yield fail(f"ClusterQueue {name} is not active{message}", _describe(worker, name))


def _lacks(worker: InspectedWorker, queue: Object) -> bool:
    """Whether a ClusterQueue is inactive for missing flavors or Topologies, which other rules report."""
    if not worker.knows(RESOURCE_FLAVOR, TOPOLOGY):
        return False
    flavors = flavors_of(queue)
    named = {worker.topology_of(name) for name in flavors} - {""}
    return not all(map(worker.flavor, flavors)) or not all(map(worker.has_topology, named))


def _describe(worker: InspectedWorker, name: str) -> str:
    return fixes.kubectl(worker.cluster, "describe", "clusterqueue", name)


def flavors(worker: InspectedWorker) -> Iterator[RuleResult]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR):
        return
    named = {name: queue for queue, obj, _ in worker.cluster_queues() for name in flavors_of(obj)}
    for name, queue in named.items():
        if is_valid_name(name) and worker.flavor(name) is None:
            hub = spec_of(worker.setup.dump.find(RESOURCE_FLAVOR, name))
            made = fixes.manifest(RESOURCE_FLAVOR, worker.version(RESOURCE_FLAVOR), name, hub)
            yield fail(
                f"ClusterQueue {queue} names ResourceFlavor {name}, which does not exist",
                fixes.apply(worker.cluster, made),
            )
    yield ok(f"ResourceFlavors {joined(filter(is_valid_name, named)) or '(none needed)'}")


def topologies(worker: InspectedWorker) -> Iterator[RuleResult]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR, TOPOLOGY):
        return
    delayed = [one for one in worker.cluster_queues() if one[2].flavor]
    for name, queue, wanted in delayed:
        yield from _topology(worker, name, queue, wanted)
    yield ok(
        f"Topologies for {joined(name for name, _, _ in delayed)}" if delayed else "no Topologies are needed"
    )


def _topology(
    worker: InspectedWorker, name: str, queue: Object, wanted: ExpectedQueue
) -> Iterator[RuleResult]:
    known = [flavor for flavor in flavors_of(queue) if worker.flavor(flavor)]
    with_topology = [flavor for flavor in known if worker.topology_of(flavor)]
    left = f"the hub's ClusterQueue {wanted.cluster_queue} leaves topology requests to the worker"
    hub = spec_of(worker.setup.dump.find(RESOURCE_FLAVOR, wanted.flavor))
    if known and not with_topology:
        there = spec_of(worker.flavor(known[0]))
        spec = {one: hub[one] for one in ("nodeLabels", "topologyName") if one in hub and not there.get(one)}
        yield fail(
            f"{left}, and no ResourceFlavor of ClusterQueue {name} names a Topology",
            fixes.patch(worker.cluster, "resourceflavor", known[0], spec),
        )
    for flavor_name in with_topology:
        topology = worker.topology_of(flavor_name)
        if is_valid_name(topology) and not worker.has_topology(topology):
            yield fail(
                f"{left}, and ResourceFlavor {flavor_name} names Topology {topology}, which does not exist",
                _make_topology(worker, topology, str(hub.get("topologyName"))),
            )


def _make_topology(worker: InspectedWorker, name: str, on_hub: str) -> str:
    spec = spec_of(worker.setup.dump.find(TOPOLOGY, on_hub)) or {
        "levels": [{"nodeLabel": "kubernetes.io/hostname"}]
    }
    return fixes.apply(worker.cluster, fixes.manifest(TOPOLOGY, worker.version(TOPOLOGY), name, spec))


_MADE: Final = "kubectl --context CLUSTER apply -f - <<'EOF' …"

RULES: Final[tuple[DoctorRule[InspectedWorker], ...]] = (
    DoctorRule(
        "worker-access",
        "the worker answers, with the credentials that Kueue uses",
        "kubectl create secret generic -n KUEUE SECRET --from-file=kubeconfig=CLUSTER.kubeconfig",
        access,
    ),
    DoctorRule(
        "worker-kueue",
        "Kueue runs, serves Workloads in the hub's version, and is not older than the hub's",
        f"kubectl --context CLUSTER apply --server-side -f {KUEUE_MANIFESTS.format('RELEASE')}",
        kueue,
    ),
    DoctorRule(
        "worker-jobs",
        "it serves the job kinds that the hub's Kueue has enabled",
        "kubectl --context CLUSTER create -f CRD",
        jobs,
    ),
    DoctorRule("worker-rights", "the account has the rights that MultiKueue needs", _MADE, rights),
    DoctorRule("worker-reads", "the account may read the objects of the checks below", _MADE, reads),
    DoctorRule("worker-namespaces", "the namespaces of the hub's LocalQueues exist", _MADE, namespaces),
    DoctorRule("worker-queues", "the hub's LocalQueues exist", _MADE, queues),
    DoctorRule("worker-cluster-queues", "their ClusterQueues exist and are active", _MADE, cluster_queues),
    DoctorRule("worker-flavors", "the ResourceFlavors that these name exist", _MADE, flavors),
    DoctorRule(
        "worker-topology",
        "if the hub's queue leaves topology requests to the worker, a ResourceFlavor names a Topology that "
        "exists",
        _MADE,
        topologies,
    ),
)


def examine_workers(setup: HubSetup, visits: Iterable[WorkerInspection]) -> tuple[Finding, ...]:
    """Return the findings of each rule on each worker; each message begins with the cluster's name.

    The first findings say what is unknown of the hub, and so of every worker.
    """
    needed, allowed = worker_needs(setup), worker_policy(setup)
    workers = [InspectedWorker(setup, visit, needed, allowed) for visit in visits]
    of_hub = setup.unknown_results(*FROM_HUB) if workers else ()
    return (
        *(Finding("worker-queues", message.level, message.message, message.fix) for message in of_hub),
        *(
            replace(finding, message=f"{worker.cluster}: {finding.message}")
            for worker in workers
            for rule in RULES
            for finding in rule.findings(worker)
        ),
    )
