"""
Rules that check the setup of each worker for the jobs that the hub sends there.

Pure. For a worker that could not be inspected, only `worker-access` has a finding.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kubectl_placement.doctor import commands
from kubectl_placement.doctor.finding import DoctorRule, Finding, fail, ok, warn
from kubectl_placement.doctor.fleet_rules import Fleet, examine_fleet
from kubectl_placement.doctor.grouping import grouped
from kubectl_placement.doctor.namespace_selectors import leaves_out, selects_none
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.stored_versions import FIX, LOOKS_AT, stored_version_findings
from kubectl_placement.doctor.worker_inspection import (
    DEFINITION_KINDS,
    FROM_HUB,
    AccessProblem,
    ExpectedQueue,
    InspectedWorker,
    WorkerInspection,
    flavors_of,
    worker_rule,
)
from kubectl_placement.hub.dump import MissingRight, Object
from kubectl_placement.hub.kinds import CRD, KUEUE_CRDS
from kubectl_placement.status.queues import STOP_POLICIES
from placement_ac.config.policy import integrations_namespace
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    CLUSTER_QUEUE,
    KUEUE_MANAGER,
    LABEL_MANAGED_BY,
    LOCAL_QUEUE,
    MANAGED_BY,
    NAMESPACE,
    RESOURCE_FLAVOR,
    SECRET,
    TOPOLOGY,
    WORKLOAD,
)
from placement_ac.core.api.decode import active_of
from placement_ac.core.api.fields import get_dict, get_str, labels_of
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.api.kueue_integrations import integrations_of_config_map
from placement_ac.core.api.text import joined
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.rights import FRAMEWORKS
from placement_ac.core.kubeconfig.dns import is_dns_name

FORBIDDEN: Final = 403
READS: Final = (
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
    {
        "apiGroups": ["kueue.x-k8s.io"],
        "resources": ["clusterqueues", "localqueues", "resourceflavors", "topologies"],
        "verbs": ["list"],
    },
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [KUEUE_CONFIG_MAP], "verbs": ["get"]},
    {
        "apiGroups": [CRD.group],
        "resources": [CRD.plural],
        "resourceNames": [*KUEUE_CRDS],
        "verbs": ["list"],
    },
)
"""The rights that an inspection needs beside those of MultiKueue."""
STOPPED: Final = "Stopped"
"""Kueue: the reason of a ClusterQueue with a stopPolicy."""
_REASON: Final = re.compile(r"[A-Za-z]{1,64}")
_APPLY: Final = "kubectl --context CLUSTER apply -f - <<'EOF' …"


def _access(worker: InspectedWorker) -> Iterator[Finding]:
    inspection, source, namespace = worker.inspection, worker.source, worker.setup.kueue_namespace
    if inspection.access_problem is None:
        yield ok(f"it answers, with the credentials of {source.kind} {namespace}/{source.name}")
    elif inspection.access_problem is AccessProblem.NO_RIGHT:
        kind = CLUSTER_PROFILE if source.kind == CLUSTER_PROFILE.kind else SECRET
        right = MissingRight("get", kind, namespace)
        yield warn(f"not inspected: the right to {right} is missing", right.check_command)
    elif inspection.access_problem is AccessProblem.NO_PLUGIN:
        yield warn(
            f"not inspected: no plugin is configured here for ClusterProfile {source.name}",
            f"{_run_again(worker)} --access-providers FILE",
        )
    elif inspection.access_problem is AccessProblem.UNREACHABLE:
        yield fail(
            f"{inspection.problem}: if it answers you, the address in the hub's credentials or the network"
            " between Kueue and it is wrong",
            worker.kubectl.run("get", "--raw", "/readyz"),
        )
    else:
        yield fail(inspection.problem, _renew_credentials(worker))


access: Final = DoctorRule(
    "worker-access",
    "the worker answers, with the credentials that Kueue uses",
    "kubectl create secret generic -n KUEUE SECRET --from-file=kubeconfig=CLUSTER.kubeconfig",
    _access,
)


def _renew_credentials(worker: InspectedWorker) -> str:
    """Return the command that renews the credentials, or that shows why they are not renewed."""
    setup, source = worker.setup, worker.source
    namespace = setup.kueue_namespace
    if source.kind == CLUSTER_PROFILE.kind:
        return commands.HUB.run("get", "clusterprofile", "-n", namespace, source.name, "-o", "yaml")
    secret = setup.dump.find(SECRET, source.name, namespace)
    if secret and labels_of(secret).get(LABEL_MANAGED_BY) == MANAGED_BY:
        account = setup.settings.credentials_account
        return commands.HUB.run("describe", "managedserviceaccount", "-n", worker.cluster, account)
    return commands.put_secret(namespace, source.name, worker.cluster)


def _run_again(worker: InspectedWorker) -> str:
    return shlex.join(("placement-ac", "doctor", "--workers", "--cluster", worker.cluster))


@worker_rule(
    "worker-kueue",
    "Kueue runs, serves Workloads in the hub's version, is not older than the hub's, and breaks no watch "
    "caches",
    f"kubectl --context CLUSTER apply --server-side -f {commands.KUEUE_MANIFESTS.format('RELEASE')}",
)
def kueue(worker: InspectedWorker) -> Iterator[Finding]:
    hub, release = worker.setup.kueue.release, worker.release
    install = worker.kubectl.install_kueue(hub)
    if release is None and not any(resource.plural == WORKLOAD.plural for resource in worker.findings.served):
        # It may be no worker at all: the admin decides whether it gets Kueue.
        named = f"--field-selector=metadata.name={KUEUE_MANAGER}"
        install = worker.kubectl.run("get", "deployments", "-A", named)
    problems = tuple(fitness.workload_problems(worker.findings, worker.setup.worker_requirements))
    for problem in problems:
        yield fail(problem, install)
    if not problems and release and hub and release[:2] < hub[:2]:
        yield warn(f"Kueue {release} there is older than {hub} on the hub", install)
    elif not problems and release and commands.WATCH_CACHES_FAIL.has(release):
        upgrade = worker.kubectl.install_kueue()
        yield warn(f"upgrade Kueue {release} there: with it, {commands.WATCH_CACHES}", upgrade)
    label = release or "of an unknown release"
    yield ok(f"Kueue {label} runs, with Workloads {worker.setup.worker_requirements.version}")


@worker_rule("worker-stored-versions", LOOKS_AT, FIX.replace("kubectl", "kubectl --context CLUSTER"))
def stored_versions(worker: InspectedWorker) -> Iterator[Finding]:
    if worker.definitions and not worker.unknown.keys() & DEFINITION_KINDS:
        upgrade = worker.kubectl.install_kueue(commands.KUEUE_TO_UPGRADE_FROM)
        yield from stored_version_findings(worker.definitions, worker.kubectl, upgrade)


@worker_rule(
    "worker-jobs",
    "it serves the job kinds that the hub's Kueue has enabled",
    "kubectl --context CLUSTER create -f CRD",
)
def jobs(worker: InspectedWorker) -> Iterator[Finding]:
    kinds = worker.setup.worker_requirements.kinds
    crds = (f"{kind.plural}.{kind.group}" for kind in fitness.missing_kinds(worker.findings, kinds))
    copy = commands.copy_crds(worker.cluster, *crds)
    for problem in fitness.kind_problems(worker.findings, kinds):
        message = f"{problem}; the CRD lets Kueue connect, and the controller of the kind runs the jobs"
        yield fail(message, copy)
    yield ok("it serves the job kinds that the hub's Kueue sends")


@worker_rule(
    "worker-integrations",
    "if its configuration can be read: Kueue there starts the kinds of jobs that the hub's Kueue sends",
    f"kubectl --context CLUSTER edit configmap -n KUEUE {KUEUE_CONFIG_MAP}",
)
def integrations(worker: InspectedWorker) -> Iterator[Finding]:
    config, namespace = worker.inspection.kueue_config, worker.setup.kueue_namespace
    enabled = None if isinstance(config, fitness.Unknown) else integrations_of_config_map(config)
    if enabled is None:
        return
    sent = [kind.framework for kind in worker.setup.worker_requirements.kinds]
    if lacking := joined(name for name in sent if name in FRAMEWORKS and name not in enabled):
        edit = worker.kubectl.run("edit", "configmap", "-n", namespace, KUEUE_CONFIG_MAP)
        restart = worker.kubectl.run("rollout", "restart", "-n", namespace, f"deployment/{KUEUE_MANAGER}")
        yield warn(
            f"Kueue there does not start {lacking}: such a job that is sent there stays suspended for ever",
            f"{edit}  # integrations: frameworks: {lacking}\n{restart}",
        )
    yield ok("Kueue there starts the job kinds that the hub's Kueue sends")


@worker_rule(
    "worker-same-names",
    "no job that waits for the worker has the name of somebody else's there",
    "kubectl --context CLUSTER get job -n NAMESPACE NAME -o yaml",
)
def same_names(worker: InspectedWorker) -> Iterator[Finding]:
    foreign_jobs = worker.inspection.foreign_jobs
    if isinstance(foreign_jobs, fitness.Unknown):
        yield warn(f"unknown: {foreign_jobs.why}", _run_again(worker))
        return
    for foreign_job in foreign_jobs:
        job = foreign_job.job
        kind = f"{job.resource.of.plural}.{job.resource.of.group}"
        show = worker.kubectl.run("get", kind, "-n", job.namespace, job.name, "-o", "yaml")
        yield fail(foreign_job.problem, show) if foreign_job.has_quota else warn(foreign_job.problem, show)
    yield ok(f"none of {len(worker.target.jobs)} jobs that wait for it has the name of another one there")


@worker_rule("worker-rights", "the account has the rights that MultiKueue needs", _APPLY)
def rights(worker: InspectedWorker) -> Iterator[Finding]:
    grant = worker.kubectl.grant(commands.SENDER, worker.inspection.user, worker.setup.worker_policy_rules)
    for problem in fitness.rights_problems(worker.findings, worker.setup.worker_requirements.rights):
        yield fail(problem, grant)
    for warning in fitness.preemption_warnings(worker.findings):
        yield warn(warning, grant)
    yield ok("the account has the rights that MultiKueue needs")


@worker_rule("worker-reads", "the account may read the objects of the checks below", _APPLY)
def reads(worker: InspectedWorker) -> Iterator[Finding]:
    answers = {kind.plural: answer for kind, answer in worker.unknown.items()}
    if isinstance(worker.findings.kueue_version, fitness.Unknown):
        answers["the release of Kueue"] = worker.findings.kueue_version
    config = worker.inspection.kueue_config
    if isinstance(config, fitness.Unknown) and integrations_namespace(worker.setup.settings):
        answers["Kueue's configuration"] = config
    if denied := [name for name, answer in answers.items() if answer.status == FORBIDDEN]:
        yield warn(
            f"unknown, because the account of {worker.findings.account} may not read it: {', '.join(denied)}",
            worker.kubectl.grant(commands.READER, worker.inspection.user, READS),
        )
    others = [answer.why for answer in worker.unknown.values() if answer.status != FORBIDDEN]
    others += fitness.unknowns(replace(worker.findings, kueue_version=""))
    for why in dict.fromkeys(others):
        yield warn(f"unknown: {why}", _run_again(worker))
    yield ok("everything could be read")


@worker_rule("worker-namespaces", "the namespaces of the hub's LocalQueues exist", _APPLY, NAMESPACE)
def namespaces(worker: InspectedWorker) -> Iterator[Finding]:
    expected = sorted({queue.namespace for queue in worker.target.queues})
    if missing := [name for name in expected if not worker.has_namespace(name)]:
        created = [commands.manifest(NAMESPACE, name) for name in missing]
        queues = [_local_queue(worker, queue) for queue in worker.target.queues if queue.namespace in missing]
        message = f"namespaces {joined(missing)} are missing: their jobs cannot run there"
        yield fail(message, worker.kubectl.apply(*created, *queues))
    yield ok(f"namespaces {joined(expected) or '(none needed)'}")


@worker_rule("worker-queues", "the hub's LocalQueues exist and are not stopped", _APPLY, LOCAL_QUEUE)
def queues(worker: InspectedWorker) -> Iterator[Finding]:
    expected = worker.target.queues
    reachable = (queue for queue in expected if worker.has_namespace(queue.namespace))
    if missing := [queue for queue in reachable if queue.key not in worker.objects[LOCAL_QUEUE]]:
        yield fail(
            f"LocalQueues {joined(queue.label for queue in missing)} are missing: their jobs cannot "
            "run there",
            worker.kubectl.apply(*(_local_queue(worker, queue) for queue in missing)),
        )
    for wanted in expected:
        if get_str(worker.objects[LOCAL_QUEUE].get(wanted.key), "spec", "stopPolicy") in STOP_POLICIES:
            yield fail(
                f"LocalQueue {wanted.label} is stopped: its jobs cannot run there",
                worker.kubectl.patch("localqueue", wanted.name, {"stopPolicy": "None"}, wanted.namespace),
            )
    yield ok(f"LocalQueues {joined(queue.label for queue in expected) or '(none needed)'}")


def _local_queue(worker: InspectedWorker, wanted: ExpectedQueue) -> Object:
    names = [name for _, name in worker.objects[CLUSTER_QUEUE]]
    spec = {"clusterQueue": names[0] if len(names) == 1 else wanted.cluster_queue}
    return worker.manifest(LOCAL_QUEUE, wanted.name, spec, wanted.namespace)


@worker_rule(
    "worker-cluster-queues",
    "their ClusterQueues exist, are active, and admit jobs of their namespaces",
    _APPLY,
    *(LOCAL_QUEUE, CLUSTER_QUEUE),
)
def cluster_queues(worker: InspectedWorker) -> Iterator[Finding]:
    for name, wanted in worker.in_use.items():
        if ("", name) not in worker.objects[CLUSTER_QUEUE]:
            on_hub = worker.hub_spec(CLUSTER_QUEUE, wanted.cluster_queue)
            hub_only = ("admissionChecks", "admissionChecksStrategy")
            spec = {field: value for field, value in on_hub.items() if field not in hub_only}
            yield fail(
                f"LocalQueue {wanted.label} uses ClusterQueue {name}, which does not exist",
                worker.kubectl.apply(worker.manifest(CLUSTER_QUEUE, name, spec)),
            )
    for name, queue, _ in worker.cluster_queues():
        yield from _inactive(worker, name, queue)
        if closed := _closed_to_namespaces(worker, name, queue):
            yield closed
    yield ok(f"ClusterQueues {joined(worker.in_use) or '(none needed)'} are active")


def _inactive(worker: InspectedWorker, name: str, queue: Object) -> Iterator[Finding]:
    condition = active_of(queue)
    describe = worker.kubectl.run("describe", "clusterqueue", name)
    if (condition and condition.status == "True") or _lacks(worker, queue):
        return
    if condition is None:
        yield warn(f"Kueue has not reconciled ClusterQueue {name} yet", describe)
    elif condition.reason == STOPPED:
        resume = worker.kubectl.patch("clusterqueue", name, {"stopPolicy": "None"})
        yield fail(f"ClusterQueue {name} is stopped", resume)
    else:
        reason = f" ({condition.reason})" if _REASON.fullmatch(condition.reason) else ""
        yield fail(f"ClusterQueue {name} is not active{reason}", describe)


def _closed_to_namespaces(worker: InspectedWorker, name: str, queue: Object) -> Finding | None:
    """Return that a ClusterQueue admits no jobs of namespaces whose LocalQueues use it."""
    users = (wanted for wanted in worker.target.queues if worker.cluster_queue_of(wanted) == name)
    there, spaces = worker.objects[NAMESPACE], sorted({wanted.namespace for wanted in users})
    known = {space: there["", space] for space in spaces if ("", space) in there}
    return selects_none(worker.kubectl, queue) or leaves_out(worker.kubectl, queue, known)


def _lacks(worker: InspectedWorker, queue: Object) -> bool:
    """Whether a ClusterQueue is inactive for missing flavors or Topologies, which other rules report."""
    if not worker.knows(RESOURCE_FLAVOR, TOPOLOGY):
        return False
    flavors = flavors_of(queue)
    topologies = {worker.topology_of(name) for name in flavors} - {""}
    return not all(map(worker.flavor, flavors)) or not all(map(worker.has_topology, topologies))


@worker_rule(
    "worker-flavors",
    "the ResourceFlavors that these name exist",
    _APPLY,
    *(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR),
)
def flavors(worker: InspectedWorker) -> Iterator[Finding]:
    used = {name: queue for queue, obj, _ in worker.cluster_queues() for name in flavors_of(obj)}
    names = [name for name in used if is_dns_name(name)]
    for name in names:
        if worker.flavor(name) is None:
            created = worker.manifest(RESOURCE_FLAVOR, name, worker.hub_spec(RESOURCE_FLAVOR, name))
            yield fail(
                f"ClusterQueue {used[name]} names ResourceFlavor {name}, which does not exist",
                worker.kubectl.apply(created),
            )
    yield ok(f"ResourceFlavors {joined(names) or '(none needed)'}")


@worker_rule(
    "worker-topology",
    "if the hub's queue leaves topology requests to the worker, a ResourceFlavor names a Topology that "
    "exists",
    _APPLY,
    *(LOCAL_QUEUE, CLUSTER_QUEUE, RESOURCE_FLAVOR, TOPOLOGY),
)
def topologies(worker: InspectedWorker) -> Iterator[Finding]:
    delayed = [cluster_queue for cluster_queue in worker.cluster_queues() if cluster_queue[2].flavor]
    for name, queue, wanted in delayed:
        yield from _without_topology(worker, name, queue, wanted)
    names = joined(name for name, _, _ in delayed)
    yield ok(f"Topologies for {names}" if names else "no Topologies are needed")


def _without_topology(
    worker: InspectedWorker, name: str, queue: Object, wanted: ExpectedQueue
) -> Iterator[Finding]:
    known = [flavor for flavor in flavors_of(queue) if worker.flavor(flavor)]
    with_topology = [flavor for flavor in known if worker.topology_of(flavor)]
    left = f"the hub's ClusterQueue {wanted.cluster_queue} leaves topology requests to the worker"
    hub = worker.hub_spec(RESOURCE_FLAVOR, wanted.flavor)
    if known and not with_topology:
        present = get_dict(worker.flavor(known[0]), "spec")
        fields = [key for key in ("nodeLabels", "topologyName") if key in hub and not present.get(key)]
        yield fail(
            f"{left}, and no ResourceFlavor of ClusterQueue {name} names a Topology",
            worker.kubectl.patch("resourceflavor", known[0], {field: hub[field] for field in fields}),
        )
    for flavor in with_topology:
        topology = worker.topology_of(flavor)
        if is_dns_name(topology) and not worker.has_topology(topology):
            default = {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]}
            on_hub = worker.hub_spec(TOPOLOGY, str(hub.get("topologyName")))
            yield fail(
                f"{left}, and ResourceFlavor {flavor} names Topology {topology}, which does not exist",
                worker.kubectl.apply(worker.manifest(TOPOLOGY, topology, on_hub or default)),
            )


RULES: Final[tuple[DoctorRule[InspectedWorker], ...]] = (
    # Objects are migrated before Kueue is upgraded.
    *(access, stored_versions, kueue, jobs, integrations, same_names, rights, reads),
    *(namespaces, queues, cluster_queues, flavors, topologies),
)


def examine_workers(setup: HubSetup, inspections: Iterable[WorkerInspection]) -> tuple[Finding, ...]:
    """Return the findings of each rule on each worker; each message begins with the cluster's name.

    The first findings say what is unknown of the hub, and so of every worker; the last are about all of them.
    """
    workers = tuple(InspectedWorker(setup, inspection) for inspection in inspections)
    of_hub = setup.unknown(*FROM_HUB) if workers else ()
    return (
        *(replace(finding, check=queues.check) for finding in of_hub),
        *grouped(
            (
                replace(finding, cluster=worker.cluster)
                for worker in workers
                for rule in RULES
                for finding in rule.findings(worker)
            ),
            named=True,
        ),
        *(examine_fleet(Fleet(setup, workers)) if workers and not of_hub else ()),
    )
