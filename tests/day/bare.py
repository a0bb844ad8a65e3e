"""
Workers that begin bare: what is on the hub for them, OCM's work agents, and what befalls both.

shrink: a quarter of a cluster's GPUs is gone. template: the checks name a template that is wrong, and is
repaired after half the time. agent: the work agent is away. queue: a LocalQueue is added on the hub, with a
job if it is in `default`. own: somebody queues a job on the worker itself. by_hand: somebody makes a
LocalQueue there, or takes the ClusterQueue over. detach: the cluster drains, leaves the hub, and joins as a
new one.
"""

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from placement_ac.core.api import constants
from placement_ac.core.inputs.queue_facts import FlavorQuota, QueueFacts
from placement_lab.standins.multikueue.objects import deep_copy
from tests.day.trace import CLUSTERS, EXTRA_QUEUES, GPUS, PLACEMENTS, QUEUES, Job, Trouble
from tests.support.builders import NS, Raw, an
from tests.support.jobs_to_dispatch import GPU
from tests.support.virtual.agents import VirtualAgents
from tests.support.virtual.bare import BareWorker, OwnJob
from tests.support.virtual.hub import checks_of
from tests.support.virtual.workers import QUEUE
from tests.support.virtual.workloads import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.day.world import World

FLAVOR: Final = "default"
THEIRS: Final = "theirs"
"""A ClusterQueue that somebody has made on a worker."""
TEMPLATE_NAME: Final = "queues"
FACTORS: Final = (0.5, 0.75)
HUB_QUOTA: Final = 1000
TEMPLATE: Final = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cluster-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors:
    - name: default
      resources: [{name: nvidia.com/gpu, nominalQuota: "%s"}]
"""
BROKEN: Final = ("kind: [", "apiVersion: v1\nkind: Pod\n", TEMPLATE % "{label.absent}", None)
"""Templates that are wrong; None: there is no ConfigMap."""
LEFT_SECONDS: Final = 60.0
"""How often it is looked whether a cluster that is to leave the hub is empty."""
JOB_SECONDS: Final = 900.0
"""How long the job of an extra LocalQueue runs."""


class BareFleet:
    """The workers of a world whose controller sets them up."""

    def __init__(self, world: "World") -> None:
        self._world, self._hub, self._kueue = world, world.hub, world.kueue
        self._kueue.begin_bare(*CLUSTERS)
        self.agents = VirtualAgents(self._hub, CLUSTERS)
        self.lost = dict.fromkeys(CLUSTERS, 0)
        """Cluster → how many quarters of its GPUs are gone."""
        self.detached: set[str] = set()
        self.factor = 1.0
        """The part of a cluster's GPUs that is to be quota."""
        self.broken = False
        """Whether the template is wrong."""
        self._templates = 0
        self._lives: Counter[str] = Counter()
        """How often an object was created anew."""
        self.wanted_since: dict[str, list[tuple[float, int]]] = {one: [] for one in CLUSTERS}
        """Cluster → when its quota was to be another one, and which."""
        self.on_cause: list[Callable[[str, str], None]] = []
        """Called with a cause for a write, and the cluster that it concerns."""
        self._make_queues()
        for cluster in CLUSTERS:
            self._wanted_changes(cluster)

    def worker(self, cluster: str) -> BareWorker:
        worker = self._kueue.workers[cluster].bare
        assert worker
        return worker

    # -- what should be

    def allocatable(self, cluster: str) -> int:
        return GPUS[cluster] * (4 - min(self.lost[cluster], 3)) // 4

    def wanted(self, cluster: str) -> int:
        """Return the quota that a cluster is to have, once that has lasted."""
        return int(self.allocatable(cluster) * self.factor)

    def wanted_range(self, cluster: str, since: float) -> tuple[int, int]:
        """Return the smallest and the largest quota that a cluster was to have since then."""
        changes = self.wanted_since[cluster]
        quotas = [quota for at, quota in changes if at <= since][-1:]
        quotas += [quota for at, quota in changes if at > since]
        return min(quotas), max(quotas)

    def is_to_be_ready(self, cluster: str) -> bool:
        """Whether nothing keeps a selected cluster from being set up."""
        away = self.agents.is_away(cluster) or cluster in self.detached
        return not away and not self.broken

    def serves(self, cluster: str, job: Job) -> bool:
        """Whether a worker is to have the LocalQueue of a job, with the hub's ClusterQueue behind it."""
        if job.queue not in EXTRA_QUEUES:
            return True
        place = constants.LOCAL_QUEUE.kind, NAMESPACE, job.queue
        theirs = self.worker(cluster).by_hand.get(place, {"spec": {"clusterQueue": QUEUE}})
        is_there = self.is_to_be_ready(cluster) or place in self.worker(cluster).objects
        return is_there and self.is_on_hub(job.queue) and theirs["spec"]["clusterQueue"] == QUEUE

    def is_on_hub(self, queue: str) -> bool:
        return (constants.LOCAL_QUEUE, EXTRA_QUEUES[queue], queue) in self._hub.objects

    def is_taken_over(self, cluster: str) -> bool:
        """Whether somebody has set the quota of the ClusterQueue."""
        return (constants.CLUSTER_QUEUE.kind, "", QUEUE) in self.worker(cluster).by_hand

    def room(self, cluster: str) -> int:
        """Return the GPUs that a job of the hub should find there."""
        worker = self.worker(cluster)
        if worker.held:
            return 0
        quota = worker.quota(QUEUE)
        if self.is_to_be_ready(cluster) and not self.is_taken_over(cluster):
            quota = max(quota, self.wanted_range(cluster, self._world.now - 400.0)[0])
        elif not any(self._world.is_listed(name, cluster) for name in PLACEMENTS):
            return 0
        return quota - worker.use().gpus.get(QUEUE, 0)

    def facts(self, cluster: str) -> dict[tuple[str, str], QueueFacts]:
        """Return what `workers.queues` reads of a worker."""
        worker, found = self.worker(cluster), {}
        for kind, namespace, name in worker.objects:
            if kind == constants.LOCAL_QUEUE.kind and (queue := worker.cluster_queue_of(namespace, name)):
                use = worker.use()
                quota = FlavorQuota(FLAVOR, worker.quota(queue) * 1000, use.gpus.get(queue, 0) * 1000)
                admitted = use.admitted.get(queue, 0)
                pending = sum(
                    number
                    for local_queue, number in use.pending.items()
                    if worker.cluster_queue_of(*local_queue) == queue
                )
                facts = QueueFacts(queue, {GPU: (quota,)}, pending, admitted, active=not worker.held)
                found[namespace, name] = facts
        return found

    # -- the hub

    def _make_queues(self) -> None:
        checks = [{"name": check} for name in PLACEMENTS for check in checks_of(name)]
        quota = [{"name": GPU, "nominalQuota": str(HUB_QUOTA)}]
        group = {"coveredResources": [GPU], "flavors": [{"name": FLAVOR, "resources": quota}]}
        spec = {
            "namespaceSelector": {},
            "admissionChecksStrategy": {"admissionChecks": checks},
            "resourceGroups": [group],
        }
        self._hub.put(an(constants.RESOURCE_FLAVOR, FLAVOR, spec={}))
        self._hub.put(an(constants.CLUSTER_QUEUE, QUEUE, spec=spec))
        for name in QUEUES:
            self._hub.put(_local_queue(name, NAMESPACE, QUEUE))

    def _uid(self, name: str) -> str:
        return f"{name}/{self._lives[name]}"

    def managed_cluster(self, cluster: str) -> Raw:
        """Return what differs in its ManagedCluster."""
        return {"status": {"allocatable": {GPU: str(self.allocatable(cluster))}}, "uid": self._uid(cluster)}

    def _wanted_changes(self, cluster: str) -> None:
        self.wanted_since[cluster].append((self._world.now, self.wanted(cluster)))

    def _cause(self, what: str, *clusters: str) -> None:
        for cluster in clusters or CLUSTERS:
            for listener in self.on_cause:
                listener(what, cluster)

    # -- what happens

    def happen(self, item: Trouble) -> None:
        getattr(self, f"_{item.what}")(item)

    def api_server(self, cluster: str, *, down: bool) -> None:
        """Take in that a worker's API server, and with it its agent, is away, or back."""
        (self.agents.pause if down else self.agents.resume)(cluster, "down")

    def _shrink(self, item: Trouble) -> None:
        self._resize(item.whom, 1)
        self._kueue.later(item.seconds, partial(self._resize, item.whom, -1))

    def _resize(self, cluster: str, quarters: int) -> None:
        before = self.allocatable(cluster)
        self.lost[cluster] += quarters
        if self.allocatable(cluster) != before:
            self._wanted_changes(cluster)
            self._world.write_cluster(cluster)
            self._kueue.later(300.0, partial(self._settles, cluster, self.allocatable(cluster)))

    def _settles(self, cluster: str, amount: int) -> None:
        if self.allocatable(cluster) == amount:
            self._cause("allocatable", cluster)

    def _template(self, item: Trouble) -> None:
        if self._templates:
            return
        self._templates, self.broken = 1, True
        self._write_template(BROKEN[item.value % len(BROKEN)])
        self._annotate({constants.ANNOTATION_TEMPLATE: TEMPLATE_NAME})
        factor = FACTORS[item.value // 5 % len(FACTORS)]
        self._kueue.later(item.seconds / 2, partial(self._repair, factor))
        self._kueue.later(item.seconds, self._no_template)

    def _repair(self, factor: float) -> None:
        self._write_template(TEMPLATE % f"{{allocatable.nvidia.com/gpu * {factor}}}")
        self._set_factor(factor)

    def _no_template(self) -> None:
        self._templates = 0
        self._lives[TEMPLATE_NAME] += 1
        self._annotate({})
        self._set_factor(1.0)

    def _set_factor(self, factor: float) -> None:
        self.factor, self.broken = factor, False
        for cluster in CLUSTERS:
            self._wanted_changes(cluster)
        self._cause("template")

    def _write_template(self, text: str | None) -> None:
        id_ = constants.CONFIG_MAP, NS, TEMPLATE_NAME
        if text is not None:
            data = {constants.TEMPLATE_KEY: text}
            self._hub.put(an(constants.CONFIG_MAP, TEMPLATE_NAME, data=data, uid=self._uid(TEMPLATE_NAME)))
        elif id_ in self._hub.objects:
            self._hub.remove(id_[0], id_[2], id_[1])

    def _annotate(self, annotations: Raw) -> None:
        for name in PLACEMENTS:
            check = deep_copy(self._hub.objects[constants.ADMISSION_CHECK, "", checks_of(name)[1]])
            check["metadata"]["annotations"] = annotations
            self._hub.put(check)

    def _agent(self, item: Trouble) -> None:
        why = f"agent {item.at}"
        self.agents.pause(item.whom, why)
        self._kueue.later(item.seconds, partial(self.agents.resume, item.whom, why))

    def _queue(self, item: Trouble) -> None:
        if self.is_on_hub(item.whom):
            return
        namespace = EXTRA_QUEUES[item.whom]
        self._lives[item.whom] += 1
        self._hub.put(_local_queue(item.whom, namespace, QUEUE, uid=self._uid(item.whom)))
        self._cause("queue")
        name = f"{item.whom}-{item.at:.0f}"
        if namespace == NAMESPACE:
            gpus = 1 + item.value % 4
            job = Job(item.at + 30, name, item.whom, PLACEMENTS[0], gpus, JOB_SECONDS)
            self._kueue.later(30.0, partial(self._world.happen, job))
        self._kueue.later(item.seconds, partial(self._remove_queue, item.whom, name))

    def _remove_queue(self, queue: str, job: str) -> None:
        """Remove a LocalQueue on the hub, and its job if it is nowhere yet."""
        self._hub.remove(constants.LOCAL_QUEUE, queue, EXTRA_QUEUES[queue])
        self._cause("queue")
        if job in self._world.jobs and self._kueue.is_known(job) and not self._kueue.placed(job):
            self._kueue.delete(job)

    def _own(self, item: Trouble) -> None:
        worker = self.worker(item.whom)
        there = [place[1:] for place in worker.objects if place[0] == constants.LOCAL_QUEUE.kind]
        queues = [place for place in there if place[1] in EXTRA_QUEUES] or there
        if queues and item.whom not in self.detached and not self._kueue.workers[item.whom].frozen:
            namespace, queue = sorted(queues)[item.value // 5 % len(queues)]
            worker.own[f"own {item.at}"] = OwnJob(namespace, queue, 1)
            self._kueue.queues_changed(item.whom)
            self._kueue.later(item.seconds, partial(self._own_ends, item.whom, f"own {item.at}"))

    def _own_ends(self, cluster: str, name: str) -> None:
        self.worker(cluster).own.pop(name, None)
        self._kueue.queues_changed(cluster)

    def _by_hand(self, item: Trouble) -> None:
        if item.whom in self.detached or self._kueue.workers[item.whom].frozen:
            return
        worker, number = self.worker(item.whom), item.value // 5
        if number % 5 == 0:
            self._take_over(item, worker)
            return
        queue = tuple(EXTRA_QUEUES)[number % 4]
        namespace = EXTRA_QUEUES[queue]
        if namespace != NAMESPACE:
            worker.make(_manifest(constants.NAMESPACE, namespace))
        worker.make(_cluster_queue(THEIRS, 1))
        worker.make(_local_queue_manifest(queue, namespace, QUEUE if number % 2 else THEIRS))
        self._cause("by hand", item.whom)
        self._kueue.queues_changed(item.whom)

    def _take_over(self, item: Trouble, worker: BareWorker) -> None:
        """Let somebody set the quota of the ClusterQueue for a while; then it is left to OCM again."""
        place = constants.CLUSTER_QUEUE.kind, "", QUEUE
        if place in worker.objects and place not in worker.by_hand:
            worker.take_over(_cluster_queue(QUEUE, worker.quota(QUEUE) // 2))
            self._kueue.queues_changed(item.whom)
            self._kueue.later(item.seconds, partial(self._give_back, item.whom))

    def _give_back(self, cluster: str) -> None:
        self.worker(cluster).by_hand.pop((constants.CLUSTER_QUEUE.kind, "", QUEUE), None)
        self._kueue.queues_changed(cluster)

    def _detach(self, item: Trouble) -> None:
        site, why = self._world.sites[item.whom], f"detach {item.at}"
        if item.whom not in self.detached:
            site.tainted.add(why)
            self._world.decide_all(item.whom)
            self._kueue.later(LEFT_SECONDS, partial(self._leave, item, why))

    def _leave(self, item: Trouble, why: str) -> None:
        """Let a cluster leave the hub once it is empty."""
        cluster, worker = item.whom, self._kueue.workers[item.whom]
        if cluster in self.detached:
            self._world.sites[cluster].tainted.discard(why)
            return
        is_used = worker.known or worker.copies or worker.jobs or (worker.bare and worker.bare.own)
        if is_used:
            self._kueue.later(LEFT_SECONDS, partial(self._leave, item, why))
            return
        self.detached.add(cluster)
        self._hub.remove(constants.MANAGED_CLUSTER, cluster)
        if (constants.MANIFEST_WORK, cluster, constants.SETUP_NAME) in self._hub.objects:
            self._hub.remove(constants.MANIFEST_WORK, constants.SETUP_NAME, cluster)
        self._kueue.later(item.seconds, partial(self._join, cluster, why))

    def _join(self, cluster: str, why: str) -> None:
        self.detached.discard(cluster)
        self._lives[cluster] += 1
        self.worker(cluster).wipe()
        self._cause("joins", cluster)
        self._world.sites[cluster].tainted.discard(why)
        self._world.write_cluster(cluster)
        self._world.decide_all(cluster)


def _local_queue(name: str, namespace: str, cluster_queue: str, **rest: Any) -> Raw:
    return an(constants.LOCAL_QUEUE, name, namespace, spec={"clusterQueue": cluster_queue}, **rest)


def _manifest(kind: constants.Kind, name: str, namespace: str = "", **rest: Any) -> Raw:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    version = kind.at(kind.versions[0]).api_version
    return {"apiVersion": version, "kind": kind.kind, "metadata": metadata} | rest


def _local_queue_manifest(name: str, namespace: str, cluster_queue: str) -> Raw:
    return _manifest(constants.LOCAL_QUEUE, name, namespace, spec={"clusterQueue": cluster_queue})


def _cluster_queue(name: str, gpus: int) -> Raw:
    quota = [{"name": GPU, "nominalQuota": str(gpus)}]
    group = {"coveredResources": [GPU], "flavors": [{"name": FLAVOR, "resources": quota}]}
    return _manifest(constants.CLUSTER_QUEUE, name, spec={"namespaceSelector": {}, "resourceGroups": [group]})
