"""
Rules that check the setup of each worker for the jobs that the hub sends there.

Pure. For a worker that could not be inspected, only `worker-access` has a finding.
"""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from kubectl_placement.doctor import commands
from kubectl_placement.doctor.finding import (
    DoctorRule,
    Finding,
    Level,
    fail,
    not_known,
    of_cluster,
    ok,
    unknown,
    warn,
)
from kubectl_placement.doctor.fleet_rules import Fleet, examine_fleet
from kubectl_placement.doctor.grouping import grouped
from kubectl_placement.doctor.managed_namespaces import label_namespaces
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.stored_versions import FIX, LOOKS_AT, stored_version_findings
from kubectl_placement.doctor.worker_inspection import (
    DEFINITION_KINDS,
    FROM_HUB,
    AccessProblem,
    InspectedWorker,
    WorkerInspection,
    worker_rule,
)
from kubectl_placement.doctor.worker_origin import origin
from kubectl_placement.doctor.worker_queue_rules import APPLY, queues
from kubectl_placement.doctor.worker_queue_rules import RULES as QUEUE_RULES
from kubectl_placement.hub.dump import MissingRight, Object
from kubectl_placement.hub.kinds import CRD, KUEUE_CRDS
from kubectl_placement.hub.managed_namespaces import FIELD, unmanaged
from placement_ac.config.policy import integrations_namespace
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    KUEUE_MANAGER,
    LABEL_MANAGED_BY,
    MANAGED_BY,
    NAMESPACE,
    RESOURCE_FLAVOR,
    SECRET,
    WORKLOAD,
)
from placement_ac.core.api.fields import labels_of
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP, gates_in_config, parsed_config
from placement_ac.core.api.kueue_integrations import integrations_of_config_map
from placement_ac.core.api.text import joined
from placement_ac.core.inputs import fitness
from placement_ac.core.inputs.rights import FRAMEWORKS

FORBIDDEN: Final = 403
FLAVORS_UNKNOWN: Final = "; flavors that a job cannot use count as room for it"
"""The effect on our dispatcher, where it may not list ResourceFlavors."""
READS: Final = (
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]},
    {
        "apiGroups": ["kueue.x-k8s.io"],
        "resources": ["clusterqueues", "localqueues", "resourceflavors"],
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


def _access(worker: InspectedWorker) -> Iterator[Finding]:
    inspection, source, namespace = worker.inspection, worker.source, worker.setup.kueue_namespace
    if inspection.access_problem is None:
        yield from _unread(worker)
        yield ok(f"it answers, with the credentials of {source.kind} {namespace}/{source.name}")
    elif inspection.access_problem is AccessProblem.NO_RIGHT:
        kind = CLUSTER_PROFILE if source.kind == CLUSTER_PROFILE.kind else SECRET
        right = MissingRight("get", kind, namespace)
        yield not_known(f"not inspected: the right to {right} is missing", right.check_command)
    elif inspection.access_problem is AccessProblem.NO_PLUGIN:
        yield not_known(
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


def _unread(worker: InspectedWorker) -> Iterator[Finding]:
    answers = {kind.plural: answer for kind, answer in worker.unknown.items()}
    if isinstance(worker.findings.kueue_version, fitness.Unknown):
        answers["the release of Kueue"] = worker.findings.kueue_version
    config = worker.inspection.kueue_config
    if isinstance(config, fitness.Unknown) and integrations_namespace(worker.setup.settings):
        answers["Kueue's configuration"] = config
    if denied := [name for name, answer in answers.items() if answer.status == FORBIDDEN]:
        counts_all = RESOURCE_FLAVOR.plural in denied and worker.setup.settings.dispatcher
        yield not_known(
            f"unknown, because the account of {worker.findings.account} may not read it: {', '.join(denied)}"
            + (FLAVORS_UNKNOWN if counts_all else ""),
            worker.kubectl.grant(commands.READER, worker.inspection.user, READS),
        )
    others = [answer.why for answer in worker.unknown.values() if answer.status != FORBIDDEN]
    others += fitness.unknowns(replace(worker.findings, kueue_version=""))
    for why in dict.fromkeys(others):
        yield unknown(why, _run_again(worker))


access: Final = DoctorRule(
    "worker-access",
    "the worker answers, with the credentials that Kueue uses, which may read what doctor looks at",
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


@worker_rule("stored-versions", LOOKS_AT, FIX.replace("kubectl", "kubectl --context CLUSTER"))
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
    "if its configuration can be read: Kueue there starts the kinds of jobs that the hub's Kueue sends, and"
    " manages the namespaces of the hub's LocalQueues",
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
    yield from _unmanaged(worker, config)
    yield ok("Kueue there starts the job kinds that the hub's Kueue sends")


def _unmanaged(worker: InspectedWorker, config_map: Object | fitness.Unknown) -> Iterator[Finding]:
    """Yield the namespaces of the hub's LocalQueues whose jobs Kueue there leaves alone."""
    config = "unknown" if isinstance(config_map, fitness.Unknown) else parsed_config(config_map)
    if isinstance(config, str):
        return
    names = {queue.namespace for queue in worker.target.queues}
    there = {name: raw for (_, name), raw in worker.objects[NAMESPACE].items() if name in names}
    if left := unmanaged(config, gates_in_config(config), worker.release, there):
        yield fail(
            f"Kueue there leaves jobs of namespace {joined(left)} alone, as its {FIELD} selects others:"
            " such a job that is sent there stays suspended for ever",
            label_namespaces(worker.kubectl, config, left),
        )


@worker_rule(
    "worker-same-names",
    "no job that waits for the worker has the name of somebody else's there",
    "kubectl --context CLUSTER get job -n NAMESPACE NAME -o yaml",
)
def same_names(worker: InspectedWorker) -> Iterator[Finding]:
    foreign_jobs = worker.inspection.foreign_jobs
    if isinstance(foreign_jobs, fitness.Unknown):
        yield unknown(foreign_jobs.why, _run_again(worker))
        return
    for foreign_job in foreign_jobs:
        job = foreign_job.job
        kind = f"{job.resource.of.plural}.{job.resource.of.group}"
        show = worker.kubectl.run("get", kind, "-n", job.namespace, job.name, "-o", "yaml")
        yield fail(foreign_job.problem, show) if foreign_job.has_quota else warn(foreign_job.problem, show)
    yield ok(f"none of {len(worker.target.jobs)} jobs that wait for it has the name of another one there")


@worker_rule("worker-rights", "the account has the rights that MultiKueue needs", APPLY)
def rights(worker: InspectedWorker) -> Iterator[Finding]:
    grant = worker.kubectl.grant(commands.SENDER, worker.inspection.user, worker.setup.worker_policy_rules)
    for problem in fitness.rights_problems(worker.findings, worker.setup.worker_requirements.rights):
        yield fail(problem, grant)
    for warning in fitness.preemption_warnings(worker.findings):
        yield warn(warning, grant)
    yield ok("the account has the rights that MultiKueue needs")


RULES: Final[tuple[DoctorRule[InspectedWorker], ...]] = (
    # Objects are migrated before Kueue is upgraded.
    *(access, stored_versions, kueue, jobs, integrations, same_names, origin, rights),
    *QUEUE_RULES,
)


def _about(finding: Finding, cluster: str) -> str:
    """Return the cluster for a failure, which may be the cause of problems that the hub shows."""
    return of_cluster(cluster) if finding.level is Level.FAIL else finding.about


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
                replace(finding, cluster=worker.cluster, about=_about(finding, worker.cluster))
                for worker in workers
                for rule in RULES
                for finding in rule.findings(worker)
            ),
            named=True,
        ),
        *(examine_fleet(Fleet(setup, workers)) if workers and not of_hub else ()),
    )
