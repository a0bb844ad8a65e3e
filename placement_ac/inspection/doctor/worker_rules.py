"""
Is each worker set up for what the hub sends there? Rules over what a visit has brought home.

Pure. Of a worker that could not be asked, only that is told.
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
from placement_ac.inspection.doctor import worker_fixes as cure
from placement_ac.inspection.doctor.crds import KUEUE_MANIFESTS
from placement_ac.inspection.doctor.finding import Finding, Rule, Told, fail, warn, well
from placement_ac.inspection.doctor.inspected_worker import FROM_HUB, Worker, needs, rules
from placement_ac.inspection.doctor.setup import Setup, condition_of, labels_of, spec_of
from placement_ac.inspection.doctor.worker_inspection import Trouble, Visit, Wanted, flavors_of, is_a_name
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
"""What an account needs beside what MultiKueue does, so that all can be looked at."""
_REASON: Final = re.compile(r"[A-Za-z]{1,64}")
STOPPED: Final = "Stopped"
"""Kueue: the reason of a ClusterQueue with a stopPolicy."""


def access(worker: Worker) -> Iterator[Told]:
    visit, target = worker.visit, worker.target
    if visit.trouble is None:
        yield well(f"it answers; entered by {_told(worker)}")
    elif visit.trouble is Trouble.NOT_ALLOWED:
        kind = CLUSTER_PROFILE if _source(worker).kind == "ClusterProfile" else SECRET
        right = MissingRight("get", kind, worker.setup.kueue_namespace)
        yield warn(f"not asked: the right to {right} is missing", right.question)
    elif visit.trouble is Trouble.NO_PLUGIN:
        yield warn(
            f"not asked: it is entered by ClusterProfile {_source(worker).name}, and the plugin of its access"
            " provider is not known here",
            f"{_again(worker)} --access-providers FILE",
        )
    elif visit.trouble is Trouble.OUT_OF_REACH:
        yield fail(
            f"{visit.problem}: if it answers you, what the hub has of its address, or the network between"
            " Kueue and it, is wrong",
            cure.on(target.cluster, "get", "--raw", "/readyz"),
        )
    else:
        yield fail(visit.problem, _renew(worker))


def _renew(worker: Worker) -> str:
    """Return what gives the hub credentials anew, or shows who should."""
    namespace, cluster, way = worker.setup.kueue_namespace, worker.cluster, _source(worker)
    if way.kind == "ClusterProfile":
        return shlex.join(("kubectl", "get", "clusterprofile", "-n", namespace, way.name, "-o", "yaml"))
    if labels_of(worker.setup.dump.find(SECRET, way.name, namespace)).get(LABEL_MANAGED_BY) == MANAGED_BY:
        account = worker.setup.settings.credentials_account
        return shlex.join(("kubectl", "describe", "managedserviceaccount", "-n", cluster, account))
    return cure.put_secret(namespace, way.name, cluster)


def _again(worker: Worker) -> str:
    return shlex.join(("placement-ac", "doctor", "--workers", "--cluster", worker.cluster))


def _source(worker: Worker) -> CredentialSource:
    way = worker.target.way
    return (
        way
        if isinstance(way, CredentialSource)
        else CredentialSource("Secret", f"multikueue-{worker.cluster}")
    )


def _told(worker: Worker) -> str:
    source = _source(worker)
    return f"{source.kind} {worker.setup.kueue_namespace}/{source.name}"


def kueue(worker: Worker) -> Iterator[Told]:
    if worker.found is None:
        return
    hub = worker.setup.kueue_release
    problems = tuple(fitness.workload_problems(worker.found, worker.needs))
    for problem in problems:
        yield fail(problem, cure.install_kueue(worker.cluster, hub))
    here = worker.release
    if not problems and here and hub and here[:2] < hub[:2]:
        yield warn(
            f"Kueue {here} there is older than {hub} on the hub", cure.install_kueue(worker.cluster, hub)
        )
    yield well(
        f"Kueue {here or 'of a release that is not known'} there, with Workloads {worker.needs.version}"
    )


def jobs(worker: Worker) -> Iterator[Told]:
    if worker.found is None:
        return
    names = [f"{kind.plural}.{kind.group}" for kind in missing_kinds(worker.found, worker.needs.kinds)]
    for problem in fitness.kind_problems(worker.found, worker.needs.kinds):
        yield fail(
            f"{problem}; a CRD alone lets Kueue connect, its jobs run with its controller",
            cure.copy_crds(worker.cluster, names),
        )
    yield well("it serves the job kinds that the hub's Kueue sends")


def rights(worker: Worker) -> Iterator[Told]:
    if worker.found is None:
        return
    for problem in fitness.rights_problems(worker.found, worker.needs.rights):
        yield fail(problem, cure.grant(worker.cluster, cure.SENDER, worker.visit.user, worker.rules))
    yield well("the account may do there what MultiKueue does")


def reads(worker: Worker) -> Iterator[Told]:
    if worker.found is None:
        return
    told = [kind.plural for kind, answer in worker.unknown.items() if answer.status == FORBIDDEN]
    release = worker.found.kueue_version
    if isinstance(release, Unknown) and release.status == FORBIDDEN:
        told.append("the release of Kueue")
    if told:
        yield warn(
            f"not known, as the account of {worker.found.account} may not read it: {', '.join(told)}",
            cure.grant(worker.cluster, cure.READER, worker.visit.user, READS),
        )
    others = [answer.why for answer in worker.unknown.values() if answer.status != FORBIDDEN]
    others += [*fitness.unknowns(replace(worker.found, kueue_version=""))]
    for why in dict.fromkeys(others):
        yield warn(f"not known: {why}", _again(worker))
    yield well("all of it could be read")


def namespaces(worker: Worker) -> Iterator[Told]:
    if not worker.knows(NAMESPACE):
        return
    away, _ = missing_queues(worker.visit.places, worker.target.places)
    if away:
        made = [cure.manifest(NAMESPACE, "v1", name, {}) for name in away]
        queues = [_local_queue(worker, one) for one in worker.target.queues if one.namespace in away]
        yield fail(
            f"there are no namespaces {joined(away)}: jobs in them cannot run there",
            cure.apply(worker.cluster, *made, *queues),
        )
    yield well(f"namespaces {joined(sorted(worker.target.places)) or '(none needed)'}")


def queues(worker: Worker) -> Iterator[Told]:
    if not worker.knows(LOCAL_QUEUE):
        return
    _, missing = missing_queues(worker.visit.places, worker.target.places)
    if missing:
        made = [
            _local_queue(worker, one) for one in worker.target.queues if (one.namespace, one.name) in missing
        ]
        told = joined(f"{namespace}/{name}" for namespace, name in missing)
        yield fail(
            f"there are no LocalQueues {told}: jobs in them cannot run there",
            cure.apply(worker.cluster, *made),
        )
    names = (f"{one.namespace}/{one.name}" for one in worker.target.queues)
    yield well(f"LocalQueues {joined(names) or '(none needed)'}")


def _local_queue(worker: Worker, wanted: Wanted) -> Object:
    spec = {"clusterQueue": worker.cluster_queue_for(wanted)}
    return cure.manifest(LOCAL_QUEUE, worker.version(LOCAL_QUEUE), wanted.name, spec, wanted.namespace)


def cluster_queues(worker: Worker) -> Iterator[Told]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE):
        return
    there = worker.of(CLUSTER_QUEUE)
    for name, wanted in worker.in_use.items():
        if ("", name) not in there:
            local = f"{wanted.namespace}/{wanted.name}"
            yield fail(
                f"LocalQueue {local} leads to ClusterQueue {name}, which is not there",
                _make_queue(worker, name, wanted),
            )
    for name, queue, _ in worker.cluster_queues():
        yield from _activity(worker, name, queue)
    yield well(f"ClusterQueues {joined(worker.in_use) or '(none needed)'} are active")


def _make_queue(worker: Worker, name: str, wanted: Wanted) -> str:
    hub = worker.setup.dump.find(CLUSTER_QUEUE, wanted.cluster_queue) or {}
    version = worker.version(CLUSTER_QUEUE)
    return cure.apply(worker.cluster, cure.manifest(CLUSTER_QUEUE, version, name, cure.without_checks(hub)))


def _activity(worker: Worker, name: str, queue: Object) -> Iterator[Told]:
    condition = condition_of(queue, CONDITION_ACTIVE)
    if condition.get("status") == "True" or _lacks(worker, queue):
        return
    reason = str(condition.get("reason") or "")
    if not condition:
        yield warn(f"Kueue there has not looked at ClusterQueue {name} yet", _describe(worker, name))
    elif reason == STOPPED:
        patch = cure.patch(worker.cluster, "clusterqueue", name, {"stopPolicy": "None"})
        yield fail(f"ClusterQueue {name} is stopped", patch)
    else:
        told = f" ({reason})" if _REASON.fullmatch(reason) else ""
        yield fail(f"ClusterQueue {name} is not active{told}", _describe(worker, name))


def _lacks(worker: Worker, queue: Object) -> bool:
    """Whether flavors or Topologies are missing that keep a ClusterQueue from being active: others tell."""
    if not worker.knows(RESOURCE_FLAVOR, TOPOLOGY):
        return False
    flavors = flavors_of(queue)
    named = {worker.topology_of(name) for name in flavors} - {""}
    return not all(map(worker.flavor, flavors)) or not all(map(worker.has_topology, named))


def _describe(worker: Worker, name: str) -> str:
    return cure.on(worker.cluster, "describe", "clusterqueue", name)


def flavors(worker: Worker) -> Iterator[Told]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR):
        return
    named = {name: queue for queue, obj, _ in worker.cluster_queues() for name in flavors_of(obj)}
    for name, queue in named.items():
        if is_a_name(name) and worker.flavor(name) is None:
            hub = spec_of(worker.setup.dump.find(RESOURCE_FLAVOR, name))
            made = cure.manifest(RESOURCE_FLAVOR, worker.version(RESOURCE_FLAVOR), name, hub)
            yield fail(
                f"ClusterQueue {queue} names ResourceFlavor {name}, which is not there",
                cure.apply(worker.cluster, made),
            )
    yield well(f"ResourceFlavors {joined(filter(is_a_name, named)) or '(none needed)'}")


def topologies(worker: Worker) -> Iterator[Told]:
    if not worker.knows(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR, TOPOLOGY):
        return
    delayed = [one for one in worker.cluster_queues() if one[2].flavor]
    for name, queue, wanted in delayed:
        yield from _topology(worker, name, queue, wanted)
    yield well(
        f"Topologies for {joined(name for name, _, _ in delayed)}" if delayed else "no Topologies are needed"
    )


def _topology(worker: Worker, name: str, queue: Object, wanted: Wanted) -> Iterator[Told]:
    known = [flavor for flavor in flavors_of(queue) if worker.flavor(flavor)]
    with_topology = [flavor for flavor in known if worker.topology_of(flavor)]
    left = f"the hub's ClusterQueue {wanted.cluster_queue} leaves topology requests to the worker"
    hub = spec_of(worker.setup.dump.find(RESOURCE_FLAVOR, wanted.flavor))
    if known and not with_topology:
        there = spec_of(worker.flavor(known[0]))
        spec = {one: hub[one] for one in ("nodeLabels", "topologyName") if one in hub and not there.get(one)}
        yield fail(
            f"{left}, and no ResourceFlavor of ClusterQueue {name} names a Topology",
            cure.patch(worker.cluster, "resourceflavor", known[0], spec),
        )
    for flavor_name in with_topology:
        topology = worker.topology_of(flavor_name)
        if is_a_name(topology) and not worker.has_topology(topology):
            yield fail(
                f"{left}, and ResourceFlavor {flavor_name} names Topology {topology}, which is not there",
                _make_topology(worker, topology, str(hub.get("topologyName"))),
            )


def _make_topology(worker: Worker, name: str, on_hub: str) -> str:
    spec = spec_of(worker.setup.dump.find(TOPOLOGY, on_hub)) or {
        "levels": [{"nodeLabel": "kubernetes.io/hostname"}]
    }
    return cure.apply(worker.cluster, cure.manifest(TOPOLOGY, worker.version(TOPOLOGY), name, spec))


_MADE: Final = "kubectl --context CLUSTER apply -f - <<'EOF' …"

RULES: Final[tuple[Rule[Worker], ...]] = (
    Rule(
        "worker-access",
        "the worker answers, entered as Kueue enters it",
        "kubectl create secret generic -n KUEUE SECRET --from-file=kubeconfig=CLUSTER.kubeconfig",
        access,
    ),
    Rule(
        "worker-kueue",
        "Kueue is there, serves Workloads in the version of the hub, and is not older",
        f"kubectl --context CLUSTER apply --server-side -f {KUEUE_MANIFESTS.format('RELEASE')}",
        kueue,
    ),
    Rule(
        "worker-jobs",
        "it serves the job kinds that the hub's Kueue has enabled",
        "kubectl --context CLUSTER create -f CRD",
        jobs,
    ),
    Rule("worker-rights", "the account may do what MultiKueue does there", _MADE, rights),
    Rule("worker-reads", "the account may read what is looked at below", _MADE, reads),
    Rule("worker-namespaces", "the namespaces of the hub's LocalQueues are there", _MADE, namespaces),
    Rule("worker-queues", "the hub's LocalQueues are there", _MADE, queues),
    Rule("worker-cluster-queues", "their ClusterQueues are there, and active", _MADE, cluster_queues),
    Rule("worker-flavors", "the ResourceFlavors that these name are there", _MADE, flavors),
    Rule(
        "worker-topology",
        "where the hub's queue leaves topology requests to the worker, a ResourceFlavor names a Topology "
        "that is there",
        _MADE,
        topologies,
    ),
)


def examine(setup: Setup, visits: Iterable[Visit]) -> tuple[Finding, ...]:
    """Return what each rule found on each worker; each message begins with the cluster's name.

    First comes what is not known of the hub, and so not of any worker.
    """
    needed, allowed = needs(setup), rules(setup)
    workers = [Worker(setup, visit, needed, allowed) for visit in visits]
    of_hub = setup.unknown(*FROM_HUB) if workers else ()
    return (
        *(Finding("worker-queues", told.level, told.message, told.cure) for told in of_hub),
        *(
            replace(finding, message=f"{worker.cluster}: {finding.message}")
            for worker in workers
            for rule in RULES
            for finding in rule.findings(worker)
        ),
    )
