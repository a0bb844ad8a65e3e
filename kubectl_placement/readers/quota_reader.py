"""
Read the queues of workers as the controller's dispatcher does, with the credentials on the hub.

Every error becomes a problem whose text quotes nothing from a Secret, a plugin or a worker.
"""

import asyncio
from dataclasses import replace
from typing import Final

from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.jobs.worker_quota import WorkloadsByWorker
from placement_ac.config.policy import integrations_namespace
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.inputs.queue_facts import WorkerFacts, WorkloadsThere
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.queues import QueueReader
from placement_ac.workers.reader import HubRefusal, Problem

NO_RIGHT: Final = "you have no right to get {}s in namespace {}"


async def read_quota(connector: WorkerConnector, view: HubView, workers: WorkloadsByWorker) -> HubView:
    """Return the hub with the queues of these workers. Raises nothing but CancelledError."""
    namespace = view.settings.kueue_namespace
    reader = QueueReader(connector, kueue_namespace=integrations_namespace(view.settings))

    async def read(name: str, then: WorkloadsThere) -> WorkerFacts:
        cluster = view.cluster_objects[name]
        facts = await reader.read(cluster, then.needs)
        return replace(facts, then=then, problem=problem_text(facts, cluster, namespace))

    facts = await asyncio.gather(*(read(name, then) for name, then in workers.items()))
    return view.with_queue_facts(dict(zip(workers, facts, strict=True)))


def problem_text(facts: WorkerFacts, cluster: KueueObject, namespace: str) -> str:
    """Return the problem without the worker's name, so that the same problem of several is reported once."""
    if isinstance(facts.problem, HubRefusal):
        return NO_RIGHT.format(cluster.source[0], namespace)
    return facts.problem.why if isinstance(facts.problem, Problem) else facts.problem
