"""The Workloads and MultiKueueConfigs of a virtual hub, as users, the controller and Kueue write them."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from placement_ac.core.api.constants import (
    KUEUE_ADMISSION,
    MULTIKUEUE_CONFIG,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.errors import Conflict, NotFound, Refused
from placement_lab.standins import multikueue as mk
from placement_lab.standins.multikueue import objects as of
from placement_lab.standins.multikueue import transitions as step
from tests.support.virtual.clock import Delays, Obj
from tests.support.virtual.workers import VirtualWorkers

Listener = Callable[[str, Kind, Obj], None]

NAMESPACE = "default"
CHECK = "multikueue"
OURS = "placement"


class VirtualWorkloads(VirtualWorkers, ABC):
    """The hub's Workloads and MultiKueueConfigs. Returned objects are copies.

    `listeners`: called on every change. Kueue's manager follows with `_note`, `_workload_arrives` and
    `_config_arrives`.
    """

    def __init__(
        self, seed: int, workers: Mapping[str, int], delays: Delays | None, config_of: Mapping[str, str]
    ) -> None:
        super().__init__(seed, workers, delays)
        self.listeners: list[Listener] = []
        self._ours_active: dict[str, bool] = {}
        self._hub: dict[str, Obj] = {}
        self._jobs: dict[str, Obj] = {}
        self._checks: dict[str, tuple[str, ...]] = {}
        self._owners: dict[str, set[str]] = defaultdict(set)
        self._config_of = dict(config_of)
        self._default_config = next(iter(self._config_of.values()))
        self._configs: dict[str, Obj] = {}

    @abstractmethod
    def _note(self, name: str, before: Obj, after: Obj) -> None:
        """Count evictions, and keep Kueue's manager busy after some."""

    @abstractmethod
    def _workload_arrives(self, name: str, seen: Obj) -> None:
        """Let Kueue's manager have that state of a Workload."""

    @abstractmethod
    def _config_arrives(self, config: str) -> None:
        """Let Kueue's manager have a MultiKueueConfig as it is."""

    # The user and the controller

    def submit(
        self,
        name: str,
        checks: Iterable[str] = (CHECK, OURS),
        template: Obj | None = None,
        *,
        queue: str = "user-queue",
        requests: Mapping[str, str] | None = None,
        slots: int = 1,
        max_seconds: int | None = None,
    ) -> Obj:
        """Create a Job with its Workload; return the Workload. `template`: its Pod template's metadata.

        `requests`: of its container; `slots`: how many of a worker's slots it takes; `max_seconds`: how long
        it says that its Pods may run. Kueue's own limit would count what ran before an eviction, too.
        """
        self._checks[name], self._sizes[name], self._queues[name] = tuple(checks), slots, queue
        job = self._born(mk.hub_job(name, NAMESPACE, queue, requests))
        job["spec"]["template"]["metadata"] = template or {}
        if max_seconds:
            job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = max_seconds
        self._jobs[name] = job
        workload = self._born(mk.workload_of(job))
        workload["metadata"]["finalizers"] = ["kueue.x-k8s.io/resource-in-use"]
        self._put(name, workload)
        return of.deep_copy(workload)

    def workload(self, name: str) -> Obj:
        """Return the hub's Workload of the Job `name` (it is called `job-<name>`)."""
        if name not in self._hub:
            raise NotFound(f"no Workload of {name}", status=404)
        return of.deep_copy(self._hub[name])

    def workloads(self) -> list[Obj]:
        return [of.deep_copy(one) for one in self._hub.values()]

    def config(self, name: str | None = None) -> Obj | None:
        """Return the MultiKueueConfig, None when there is none."""
        found = self._configs.get(name or self._default_config)
        return of.deep_copy(found) if found else None

    def set_config(
        self, names: Sequence[str] | None, resource_version: str | None = None, *, config: str | None = None
    ) -> None:
        """Write spec.clusters; None deletes the config. With a version: only if it is the current one."""
        name = config or self._default_config
        before = self._configs.get(name)
        if (
            resource_version is not None
            and (before or {}).get("metadata", {}).get("resourceVersion") != resource_version
        ):
            raise Conflict("the MultiKueueConfig has changed", status=409)
        if names is None:
            self._configs.pop(name, None)
            if before:
                self._notify("remove", MULTIKUEUE_CONFIG, before)
        else:
            self._configs[name] = self._new_config(name, before, list(names))
            self._notify("put", MULTIKUEUE_CONFIG, self._configs[name])
        self.later(self._draw("cache"), partial(self._config_arrives, name))

    def _new_config(self, name: str, before: Obj | None, names: list[str]) -> Obj:
        fresh = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "MultiKueueConfig",
            "metadata": {"name": name},
            "spec": {"clusters": names},
        }
        if before is None:
            return self._born(fresh)
        after = of.deep_copy(before)
        after["spec"] = fresh["spec"]
        after["metadata"]["generation"] += after["spec"] != before["spec"]
        return self._numbered(after)

    def answer(
        self,
        name: str,
        state: str,
        message: str = "",
        *,
        check: str = OURS,
        requeue_after: int | None = None,
        resource_version: str | None = None,
    ) -> None:
        """Force-apply our entry of the Workload's checks; with a version: Conflict if it has changed."""
        workload = self._changed(name, resource_version)
        entry: Obj = {"state": state, "message": message}
        if requeue_after is not None:
            entry["requeueAfterSeconds"] = requeue_after
        if of.check_of(workload, check) is None:
            raise Refused(f"the Workload has no check {check}", status=422)
        of.set_check(workload, check, self.now, **entry)
        self._put(name, workload)

    def answer_when_asked(self, name: str, state: str, check: str = OURS) -> None:
        """Wait until Kueue has added our entry and reserved quota, then answer."""
        self.until(lambda: self.state(name, check) == "Pending" and self.holds(name, of.QUOTA_RESERVED))
        self.answer(name, state, check=check)

    def nominate(
        self,
        name: str,
        clusters: Sequence[str],
        *,
        manager: str = KUEUE_ADMISSION,
        resource_version: str | None = None,
        complete: bool = True,
    ) -> None:
        """Write status.nominatedClusterNames as an external dispatcher does; Refused when clusterName is set.

        `manager`: another one than Kueue's leaves the field to it. `complete`: the apply contains all
        fields that Kueue's manager owns; without it the apply removes them.
        """
        before = self._hub[name]
        workload = self._changed(name, resource_version)
        status = workload["status"]
        status["nominatedClusterNames"] = list(clusters)
        if manager == KUEUE_ADMISSION and not complete:
            status.pop("admission", None)
            status["conditions"] = []
        if refused := mk.refusal(before, workload):
            raise Refused(refused, status=422)
        self._own_nominations(name, workload, manager)
        self._put(name, workload)

    def activate(self, name: str, active: bool) -> None:
        """Set the Workload's spec.active."""
        workload = self._changed(name, None)
        workload["spec"]["active"] = active
        self._put(name, workload)

    def set_ours_active(self, active: bool, check: str = OURS) -> None:
        """Write condition Active of our check; while it is False, queues that list it admit nothing new."""
        if active != self._ours_active.get(check, True):
            self._ours_active[check] = active
            self.later(self._draw("cache"), self._wake_all)

    def set_pods_ready(self, name: str, ready: bool) -> None:
        """Write condition PodsReady, as the hub's Kueue does with `waitForPodsReady`."""
        if name not in self._hub:
            return
        workload = self._changed(name, None)
        of.set_condition(workload, "PodsReady", ready, "Started" if ready else "WaitForStart", "", self.now)
        self._put(name, workload)

    def evict(self, name: str) -> None:
        """Let the hub's own Kueue preempt the Workload; without quota nothing happens."""
        workload = self._changed(name, None)
        if of.is_condition_true(workload, of.QUOTA_RESERVED) and not of.is_condition_true(
            workload, of.FINISHED
        ):
            step.evict(workload, step.BY_PREEMPTION, "Preempted to accommodate a workload", self.now)
            self._written_by_kueue(name, workload["status"])

    def delete(self, name: str) -> None:
        """Delete the hub's Job; its Workload goes with it."""
        self._jobs.pop(name)
        workload = self._changed(name, None)
        workload["metadata"]["deletionTimestamp"] = of.format_time(self.now)
        self._put(name, workload)

    # Reading

    def is_known(self, name: str) -> bool:
        """Whether the hub has the Workload of a Job."""
        return name in self._hub

    def placed(self, name: str) -> str:
        """Return status.clusterName, "" when it is not set."""
        return of.cluster_of(self._hub[name]) if name in self._hub else ""

    def nominated(self, name: str) -> list[str]:
        return of.nominated_of(self._hub[name])

    def holds(self, name: str, kind: str) -> bool:
        """Return whether a condition of the hub's Workload is True."""
        return of.is_condition_true(self._hub[name], kind)

    def state(self, name: str, check: str = CHECK) -> str:
        return str((of.check_of(self._hub[name], check) or {}).get("state", ""))

    # Writing

    def _changed(self, name: str, resource_version: str | None) -> Obj:
        workload = self.workload(name)
        if resource_version not in (None, workload["metadata"]["resourceVersion"]):
            raise Conflict("the Workload has changed", status=409)
        return workload

    def _put(self, name: str, after: Obj) -> None:
        before = self._hub.get(name)
        if before is not None and before["spec"] != after["spec"]:
            after["metadata"]["generation"] += 1
        if before == after:
            return
        self._numbered(after)
        self._hub[name] = after
        self._note(name, before or {}, after)
        self._notify("put", WORKLOAD, after)
        self.later(self._draw("cache"), lambda: self._workload_arrives(name, after))

    def _notify(self, what: str, kind: Kind, item: Obj) -> None:
        copied = of.deep_copy(item)  # they all only read it
        for listener in self.listeners:
            listener(what, kind, copied)

    def _own_nominations(self, name: str, after: Obj, manager: str) -> None:
        names = of.nominated_of(after)
        same = names == of.nominated_of(self._hub[name])
        self._owners[name] = (self._owners[name] | {manager} if same else {manager}) if names else set()

    def _written_by_kueue(self, name: str, status: Obj) -> None:
        """Store a status that Kueue applies. Raises Refused as the API server or the webhook does."""
        before = self._hub[name]
        owners = self._owners[name] or {KUEUE_ADMISSION}
        after = self.workload(name) | {"status": mk.keep_what_others_own(before, status, owners)}
        if refused := mk.refusal(before, after):
            raise Refused(refused, status=422)
        if "nominatedClusterNames" in status or not of.nominated_of(after):
            self._own_nominations(name, after, KUEUE_ADMISSION)
        self._put(name, after)
