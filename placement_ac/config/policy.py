"""
Derives the inputs of the core from the settings and from what the hub serves.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import structlog

from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTERS_MAX,
    MULTIKUEUE_CLUSTER,
    REORDER_MARGIN,
    REORDER_SECONDS,
    RETENTION_SECONDS,
    SCORE_HOLD_SECONDS,
    SCORE_INTERVAL_SECONDS,
    UNLIST_AFTER_SECONDS,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP, parse_gate
from placement_ac.core.capacity_report.policy import CapacityPolicy
from placement_ac.core.inputs import rights
from placement_ac.core.inputs.fitness import WorkerRequirements
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.score_reports import ScorePolicy
from placement_ac.core.inputs.state import Body, HubFacts, PlacementPolicy
from placement_ac.core.inputs.worker_setup import WorkerSetupPolicy
from placement_ac.core.leader_election import LeaseDurations

log = structlog.get_logger(__name__)


def hub_facts(
    settings: Settings,
    resources: Mapping[Kind, Resource],
    schema: Body | None,
    kueue: rights.RunningKueue,
) -> HubFacts:
    """Return the facts of the whole hub; `schema` is the published schema of MultiKueueConfig."""
    return HubFacts(
        check_version=resources[ADMISSION_CHECK].api_version,
        cluster_version=resources[MULTIKUEUE_CLUSTER].version,
        clusters_max=clusters_max(schema),
        namespaces=settings.placement_namespace,
        naming=settings.cluster_names,
        kueue=kueue,
    )


def clusters_max(schema: Body | None) -> int:
    """Return how many clusters a MultiKueueConfig may list by its published schema (Kueue: 10, later 20)."""
    node: object = schema
    for step in ("properties", "spec", "properties", "clusters", "maxItems"):
        node = node.get(step) if isinstance(node, dict) else None
    return node if isinstance(node, int) else CLUSTERS_MAX


class RuleProblems:
    """Logs the first problem of each filter and score of the dispatcher."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def __call__(self, rule: str, problem: str) -> None:
        if rule not in self._reported:
            self._reported.add(rule)
            log.error("a filter or score of the dispatcher failed", name=rule, error=problem)


JOBS: Final = "jobs"
INTEGRATIONS: Final = "integrations"
"""The words of the setting `look_for`."""
JUDGED_AT_ONCE: Final = 100
"""The event loop waits for a plan: it judges so many jobs, and the next plan goes on."""


def placement_policy(settings: Settings, judged_at_once: int | None = None) -> PlacementPolicy:
    """Return the policy of the settings for all Placements; `judged_at_once` None: without a limit."""
    standby = UNLIST_AFTER_SECONDS if settings.dispatcher else 0.0
    return PlacementPolicy(
        removal=settings.removal_policy,
        drain_deadline=settings.drain_deadline,
        waiting_grace=settings.waiting_grace,
        settle=settings.settle,
        retention=RETENTION_SECONDS,
        loss_grace=settings.mass_loss_grace,
        reorder_margin=REORDER_MARGIN,
        reorder_interval=REORDER_SECONDS,
        retry_waiting_after=settings.retry_waiting_after,
        dispatcher=settings.dispatcher,
        unlist_after=standby if settings.unlist_after is None else settings.unlist_after,
        step_size=settings.step_size,
        dispatch_profile=settings.dispatch_profile,
        judged_at_once=judged_at_once,
        report_rule_problem=RuleProblems(),
        node_labels=dict(node_label.split("=", 1) for node_label in settings.node_labels),
        job_taints=settings.job_taints,
        cost_labels=settings.cost_labels,
        gpus=frozenset(settings.score_gpus),
        avoid_after_failure=settings.avoid_after_failure,
        probe=settings.credentials_probe,
    )


def needs_kueue(settings: Settings) -> bool:
    """Whether it matters which Kueue the hub has, and the settings do not say all of it."""
    wanted = settings.credentials_provision != "none" or settings.credentials_probe
    return wanted and not (settings.kueue_version and settings.kueue_feature_gates)


def known_kueue(
    settings: Settings, running: rights.RunningKueue, before: rights.RunningKueue
) -> rights.RunningKueue:
    """Return the hub's Kueue: by the settings, else as it was found, else as it was known before.

    A configuration that can no longer be read withdraws no right: Kueue still runs with what it read.
    """
    known = before.gates if running.gates is None else running.gates
    gates = dict(known or ()) | dict(filter(None, map(parse_gate, settings.kueue_feature_gates)))
    release = rights.parse_release(settings.kueue_version) or running.release or before.release
    return rights.RunningKueue(release, tuple(sorted(gates.items())))


def lease_durations(settings: Settings) -> LeaseDurations:
    """Return how long a Lease is good, and when it is renewed."""
    return LeaseDurations.of(settings.leader_elect_lease_duration)


def worker_requirements(settings: Settings, version: str, kueue: rights.RunningKueue) -> WorkerRequirements:
    """Return what a worker needs for the hub's Kueue; `version` is that of the Workloads which it gets."""
    release, gates = kueue
    frameworks = _frameworks(settings, release)
    needed = rights.required_rights(*frameworks, dict(gates or ()), release)
    return WorkerRequirements(version, rights.job_kinds(*frameworks, release), needed)


def worker_policy_rules(settings: Settings, kueue: rights.RunningKueue) -> tuple[Body, ...]:
    """Return the PolicyRules that the hub's Kueue needs on a worker, and ours for what is on."""
    release, gates = kueue
    granted = rights.policy_rules(*_frameworks(settings, release), dict(gates or ()), release)
    queues = (rights.DISPATCHER.rule,) if reads_queues(settings) else ()
    nodes = (rights.NODES.rule,) if settings.report_scores and settings.score_nodes else ()
    flavors = (rights.FLAVORS.rule,) if settings.dispatcher else ()
    looked_for = _looked_for(settings, release) if settings.dispatcher else ()
    return tuple(rule.as_dict() for rule in sorted((*granted, *queues, *flavors, *nodes, *looked_for)))


def integrations_namespace(settings: Settings) -> str:
    """Return the namespace of Kueue on workers, where its integrations are looked for; "": they are not."""
    return settings.kueue_namespace if INTEGRATIONS in settings.look_for else ""


def _looked_for(settings: Settings, kueue: rights.KueueRelease | None) -> Iterator[rights.PolicyRule]:
    """Yield the rules to read Kueue's integrations on a worker, and the names of jobs that are taken."""
    if INTEGRATIONS in settings.look_for:
        yield rights.PolicyRule(("",), ("configmaps",), ("get",), (KUEUE_CONFIG_MAP,))
    if JOBS in settings.look_for:
        for kind in rights.job_kinds(*_frameworks(settings, kueue), kueue):
            if kind.group:
                yield rights.PolicyRule((kind.group,), (kind.plural,), ("list",))


def _frameworks(
    settings: Settings, kueue: rights.KueueRelease | None
) -> tuple[tuple[str, ...], tuple[rights.ExternalFramework, ...]]:
    parsed = map(rights.parse_external, settings.external_frameworks)  # Settings refuses the others
    externals = tuple(framework for framework in parsed if isinstance(framework, rights.ExternalFramework))
    return settings.frameworks or rights.default_frameworks(kueue), externals


def provisioning_policy(settings: Settings) -> ProvisioningPolicy:
    """Return the policy for provisioned credentials, without the rules. Raises BadSettings."""
    return ProvisioningPolicy(
        provision=settings.credentials_provision != "none",
        account=settings.credentials_account,
        form=settings.credentials_form,
        validity=settings.credentials_validity,
        retention=RETENTION_SECONDS,
        proxy=settings.cluster_proxy,
        proxy_authority=_read_ca(settings.cluster_proxy_ca),
    )


def worker_setup_policy(settings: Settings) -> WorkerSetupPolicy:
    """Return the policy for the set-up of workers."""
    return WorkerSetupPolicy(
        enabled=settings.worker_setup != "none",
        template=settings.worker_setup_template,
        reserve=settings.quota_reserve,
        retention=RETENTION_SECONDS,
    )


def score_policy(settings: Settings) -> ScorePolicy:
    """Return the policy for scores that are reported."""
    return ScorePolicy(
        enabled=settings.report_scores,
        hold=SCORE_HOLD_SECONDS,
        interval=SCORE_INTERVAL_SECONDS,
        gpus=settings.score_gpus,
        nodes=settings.score_nodes,
    )


def reads_queues(settings: Settings) -> bool:
    """Whether workers are asked for their queues anyway: to choose between them, or for scores."""
    return settings.dispatcher or settings.report_scores


def capacity_policy(settings: Settings) -> CapacityPolicy:
    """Return the policy for the capacity that is published: only where the queues are read anyway."""
    return CapacityPolicy(
        enabled=reads_queues(settings),
        namespace=settings.leader_elect_resource_namespace or settings.kueue_namespace,
        gpus=settings.score_gpus,
        reads_jobs=settings.dispatcher,
    )


def _read_ca(path: Path | None) -> bytes:
    try:
        return path.read_bytes() if path else b""
    except OSError as error:
        raise BadSettings(f"cluster-proxy-ca: {path} cannot be read: {error.strerror}") from None
