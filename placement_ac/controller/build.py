"""Builds the parts of a session from the settings and from what discovery has found on the hub."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from placement_ac.cache.store import Cache
from placement_ac.config import policy
from placement_ac.config.settings import Settings
from placement_ac.controller.capacity_reporter import CapacityReporter
from placement_ac.controller.reconcile import Reconciler
from placement_ac.controller.recorder import Recorder
from placement_ac.controller.score_reporter import ScoreReporter
from placement_ac.controller.write_limits import WriteLimits
from placement_ac.controller.writer import OnWrite, Writer
from placement_ac.core.api.constants import (
    ACCOUNT,
    CAPACITY_PROVIDER,
    CLUSTER_PROFILE,
    MANIFEST_WORK,
    PERMISSION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    WRITES_PER_SECOND,
    Kind,
    Resource,
)
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.state import HubFacts, Key
from placement_ac.kube.client import Client
from placement_ac.observability.health import Health
from placement_ac.observability.metrics import Metrics
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.copies import CopyReader
from placement_ac.workers.exec_plugins import AccessProviders
from placement_ac.workers.identity import IdentityReader
from placement_ac.workers.probe import Probe, probe_checks
from placement_ac.workers.queries import HubLocalQueues
from placement_ac.workers.queues import QueueReader
from placement_ac.workers.scores import NodeReader, ScoreReader
from placement_ac.workers.unknown_copies import UnknownCopyReader


@dataclass(frozen=True, slots=True)
class SessionInputs:
    """The settings, and what discovery has found on the hub."""

    settings: Settings
    client: Client
    resources: Mapping[Kind, Resource]
    facts: HubFacts
    providers: AccessProviders | None
    provisioning: ProvisioningPolicy
    health: Health
    metrics: Metrics


def new_reconciler(
    inputs: SessionInputs,
    cache: Cache,
    *,
    on_write: OnWrite,
    add_after: Callable[[Key, float], None],
    clock: Callable[[], datetime],
    capacity: CapacityReporter | None = None,
) -> Reconciler:
    """Return what reconciles the keys, with a writer, a recorder and the queries of workers.

    `capacity` also gets the queues of workers that are read.
    """
    settings, client, resources = inputs.settings, inputs.client, inputs.resources
    connector = WorkerConnector(
        client,
        resources[SECRET],
        settings.kueue_namespace,
        providers=inputs.providers,
        profile_resource=resources.get(CLUSTER_PROFILE),
    )
    version, kueue = resources[WORKLOAD].version, inputs.facts.kueue
    probe = Probe(connector, policy.worker_requirements(settings, version, kueue))
    limits = WriteLimits(WRITES_PER_SECOND)
    writer, queues = (
        Writer(client, resources, on_write, inputs.metrics, limits=limits),
        QueueReader(connector, kueue_namespace=policy.integrations_namespace(settings)),
    )
    reports, scores = policy.score_policy(settings), None
    if reports.enabled and PLACEMENT_SCORE in resources:
        nodes = NodeReader(connector, reports.gpus) if reports.nodes else None
        read = ScoreReader(QueueReader(connector), nodes).read  # with slots of its own
        scores = ScoreReporter(
            cache,
            writer,
            reports,
            read,
            clock=clock,
            monotonic=time.monotonic,
            add_after=add_after,
            ask_cluster=capacity.ask_cluster if capacity else None,
        )
    return Reconciler(
        cache,
        writer,
        Recorder(client, resources, clock),
        read_copies=CopyReader(connector).read,
        read_queues=queues.read,
        ask_worker=capacity.ask_worker if capacity else None,
        read_identity=IdentityReader(connector).read,
        count_unknown_copies=UnknownCopyReader(connector, resources[WORKLOAD], cache.has_workload).read,
        probe=partial(probe_checks, probe, HubLocalQueues(client)) if settings.credentials_probe else None,
        scores=scores,
        clock=clock,
        monotonic=time.monotonic,
        add_after=add_after,
        metrics=inputs.metrics,
        on_close=connector.close,
    )


def new_capacity_reporter(
    inputs: SessionInputs, cache: Cache, clock: Callable[[], datetime]
) -> CapacityReporter | None:
    """Return what publishes the capacity of the workers; None: nobody does."""
    wanted = policy.capacity_policy(inputs.settings)
    if not wanted.enabled:
        return None
    return CapacityReporter(cache, inputs.client, wanted, clock=clock, monotonic=time.monotonic)


def new_cache(inputs: SessionInputs) -> Cache:
    """Return an empty cache for what the settings ask for."""
    settings, facts, providers = inputs.settings, inputs.facts, inputs.providers
    provisioning = replace(
        inputs.provisioning,
        served={ACCOUNT, PERMISSION} <= inputs.resources.keys(),
        rules=policy.worker_policy_rules(settings, facts.kueue),
    )
    return Cache(
        facts,
        kueue_namespace=settings.kueue_namespace,
        methods=settings.credentials,
        policy=replace(
            policy.placement_policy(settings, policy.JUDGED_AT_ONCE), identify=True, guards_copies=True
        ),
        provisioning=provisioning,
        setup=replace(policy.worker_setup_policy(settings), served=MANIFEST_WORK in inputs.resources),
        providers=providers.allowed_servers if providers else None,
        capacity=CAPACITY_PROVIDER in inputs.resources,
        reports=policy.score_policy(settings),
    )
