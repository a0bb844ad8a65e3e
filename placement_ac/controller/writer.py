"""
Carries out actions, phase by phase, and passes the written objects to `on_write`.

The writes of one phase run in parallel, as many at a time as the slots allow (`fair_slots`); the next phase
begins when all of them are done, or hang (`workload_writes`). A write that somebody undoes again and again is
held back (`write_limits`).
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from cachetools import LRUCache

from placement_ac.cache.workloads import gave_up
from placement_ac.controller.fair_slots import FairSlots, Flow
from placement_ac.controller.workload_writes import OnLateEnd, WorkloadAction, WorkloadWrites
from placement_ac.controller.write_limits import (
    PACED_SECONDS,
    REMEMBERED,
    ObjectName,
    UndoneWrite,
    WriteLimits,
    object_of,
)
from placement_ac.core.api.constants import (
    FIELD_MANAGER,
    KUEUE_ADMISSION,
    PLACEMENT_SCORE,
    SECRET,
    WORKLOAD,
    WRITES_PER_SECOND,
    Kind,
    Resource,
)
from placement_ac.core.api.decode import meta_of, workload, workload_with_job, written_spec
from placement_ac.core.api.errors import (
    ApiError,
    Conflict,
    HeldBack,
    NotFound,
    Postponed,
    Refused,
    WorkloadWritesFailed,
)
from placement_ac.core.api.job_spec import NO_JOB
from placement_ac.core.api.managed_fields import applied_version, last_writer, nomination_body
from placement_ac.core.api.objects import Meta, Workload
from placement_ac.core.plan.diff import (
    Action,
    Apply,
    Delete,
    Nominate,
    Phase,
    SetCheckStates,
    SetCondition,
    SetStatus,
    holds,
)
from placement_ac.kube.client import Client, Object
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metrics import Metrics

log = structlog.get_logger(__name__)

UNCHANGED_TRIES: Final = 4
"""Tries to write to a Workload that others change meanwhile, without a change that matters here."""

Outcome = tuple[Kind, Object, bool]
"""The object after a write, and whether it was deleted."""
OnWrite = Callable[[Kind, Object, bool], None]
"""Called with the fields of an Outcome."""


@dataclass(frozen=True, slots=True)
class WriteContext:
    """Whose writes they are, and who is called when one to a Workload has ended that hung."""

    flow: Flow
    on_late_end: OnLateEnd = lambda *_: None


NO_CONTEXT: Final = WriteContext(Flow())


class Writer:
    """Writes to one hub, in the versions that it serves."""

    def __init__(
        self,
        client: Client,
        resources: Mapping[Kind, Resource],
        on_write: OnWrite,
        metrics: Metrics | None = None,
        *,
        limits: WriteLimits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._resources = resources
        self._on_write = on_write
        self._logged = LogDeduplicator()
        self._metrics = metrics or Metrics()
        self._limits = limits or WriteLimits(WRITES_PER_SECOND)
        self._monotonic = monotonic
        self._slots = FairSlots()
        self.workload_writes = WorkloadWrites()
        self._undoers: LRUCache[ObjectName, str] = LRUCache(REMEMBERED)
        """Who undoes our writes."""
        self._writers: Mapping[type[Action], Callable[[Any], Awaitable[Outcome | None]]] = {
            Apply: self._apply,
            Delete: self._delete,
            SetCondition: self._set_status,
            SetStatus: self._set_status,
            SetCheckStates: self._on_workload,
            Nominate: self._on_workload,
        }
        """Each returns the outcome; None: the object no longer exists."""

    async def execute(
        self,
        phases: Iterable[Phase],
        done: list[Action] | None = None,
        *,
        pass_over_undone: bool = False,
        context: WriteContext = NO_CONTEXT,
    ) -> None:
        """Carry out all phases, or raise the first error of a phase. Raises ApiError.

        An error of one Workload does not stop the others: at the end, WorkloadWritesFailed is raised, or
        Postponed if writes hang and nothing else failed. With `pass_over_undone`, a write that is held back
        does not stop the later phases either: HeldBack is raised at the end, if nothing else is. The actions
        that succeeded are added to `done`, even if an error is raised.
        """
        late_errors: list[BaseException] = []
        for phase in phases:
            results = await self._write_phase(phase, context)
            if done is not None:
                done += [action for action, result in zip(phase, results, strict=True) if result is None]
            errors = [error for error in results if error]
            if phase and isinstance(phase[0], WorkloadAction):
                late_errors += map(_workload_error, errors)
            elif pass_over_undone:
                late_errors += [error for error in errors if isinstance(error, HeldBack)]
                _raise_first(error for error in errors if not isinstance(error, HeldBack))
            else:
                _raise_first(errors)
        _raise_first(error for error in late_errors if not isinstance(error, ApiError))
        _raise_first(late_errors)

    async def _write_phase(self, phase: Phase, context: WriteContext) -> list[BaseException | None]:
        """Carry out all actions of a phase; return the error of each, None if it succeeded."""
        flow = context.flow
        on_workloads = [action for action in phase if isinstance(action, WorkloadAction)]
        if len(on_workloads) < len(phase):
            writes = (self._write(action, flow) for action in phase)
            return await asyncio.gather(*writes, return_exceptions=True)

        async def write(action: WorkloadAction, on_hang: Callable[[], None]) -> None:
            await self._write(action, flow._replace(namespace=action.namespace), on_hang)

        return await self.workload_writes.run(flow.key, on_workloads, write, context.on_late_end)

    async def _write(self, action: Action, flow: Flow, on_hang: Callable[[], None] = lambda: None) -> None:
        await self._obey_limits(action)
        async with self._slots.hold(flow, on_hang):
            await self._send(action)

    async def _send(self, action: Action) -> None:
        began, kind = time.monotonic(), action.kind.kind
        verb, message = _VERBS_AND_MESSAGES[type(action)]
        try:
            outcome = await self._writers[type(action)](action)
        except ApiError as error:
            self._metrics.wrote(kind, verb, error)
            raise
        self._metrics.wrote(kind, verb)
        self._remember(action)
        if outcome:
            self._on_write(*outcome)
            took = round((time.monotonic() - began) * 1000, 1)
            level = logging.DEBUG if action.kind is PLACEMENT_SCORE else logging.INFO  # they are many
            log.log(level, message, kind=kind, name=action.name, took_ms=took, **_details(action))

    async def _obey_limits(self, action: Action) -> None:
        """Wait until the action may be written. Raises HeldBack if somebody undoes it again and again."""
        now = self._monotonic()
        if undone := self._limits.undone(action, now):
            if undone.is_new:
                self._metrics.write_undone(action.kind.kind)
            if undone.wait:
                raise await self._undone(action, undone)
        if wait := self._limits.reserve(action, now):
            level = self._logged.level("limit", "")
            log.log(level, "writes wait: they are more than --writes-per-second", seconds=round(wait, 1))
            await asyncio.sleep(wait)
        else:
            self._logged.ended("limit")

    def _remember(self, action: Action) -> None:
        name, now = object_of(action), self._monotonic()
        undone = self._limits.undone(action, now)
        if not (undone and undone.times) and self._logged.ended((name, "undone")):
            log.info("what we write lasts again", object=str(name))
        self._limits.wrote(action, now)

    async def _undone(self, action: Action, undone: UndoneWrite) -> HeldBack:
        """Find out who undoes a write, log it, and return the error."""
        name = object_of(action)
        if undone.is_new or name not in self._undoers:
            self._undoers[name] = await self._last_writer(action)
        who = self._undoers[name]
        level = self._logged.level((name, "undone"), who)
        log.log(level, "a write is undone again and again", object=str(name), by=who, times=undone.times)
        message = (
            f"stop {who} from undoing what we write to {name}; until then we write it "
            f"every {PACED_SECONDS:.0f} s"
        )
        return HeldBack(message, retry_after=undone.wait)

    async def _last_writer(self, action: Action) -> str:
        """Return who has written an object last, by its managedFields."""
        name = object_of(action)
        try:
            obj = await self._client.find(self._resources[name.kind], name.name, name.namespace or None)
        except NotFound:
            return "whoever deletes it"
        except ApiError:
            return "an unknown writer"
        who = last_writer(
            obj, FIELD_MANAGER, "status" if isinstance(action, SetCondition | SetStatus) else ""
        )
        return f"another {FIELD_MANAGER}" if who == FIELD_MANAGER else who or "an unknown writer"

    async def _on_workload(self, action: WorkloadAction) -> Outcome | None:
        """Write to a Workload. Raises WorkloadWritesFailed if refused: that is not the check's fault."""
        try:
            if isinstance(action, Nominate):
                after = await self._nominate(action)
            else:
                after = await self._set_check_states(action)
        except NotFound:
            log.debug("already gone", kind=action.kind.kind, name=action.name)
        except Refused as refused:
            if isinstance(action, Nominate) and refused.status == 422:  # Kueue: it has been placed meanwhile
                log.debug("already placed", name=action.name, error=refused.message)
                return None
            level = self._logged.level(action.workload.meta.uid, refused.message)
            keys = {"namespace": action.namespace, "name": action.name}
            log.log(level, "the API server refused a write to a Workload", **keys, error=refused.message)
            raise WorkloadWritesFailed(refused.message, retry_after=refused.retry_after) from refused
        else:
            self._logged.ended(action.workload.meta.uid)
            return WORKLOAD, after, False
        return None

    async def _set_check_states(self, action: SetCheckStates) -> Object:
        """Apply only our entries, on the observed version, so that a change in between is a conflict.

        Force is needed to take over the entries that Kueue has created.
        """
        resource, meta = self._resources[WORKLOAD], action.workload.meta
        status = {"admissionChecks": list(action.entries)}
        for _ in range(UNCHANGED_TRIES):
            identity = {"name": meta.name, "namespace": meta.namespace}
            body = {"metadata": identity | {"resourceVersion": meta.resource_version}, "status": status}
            try:
                return await self._client.apply(resource, body, subresource="status", force=True)
            except Conflict:
                meta = await self._unchanged(action.workload)
        raise Conflict(f"Workload {action.workload.label} keeps changing")

    async def _unchanged(self, before: Workload) -> Meta:
        """Return the new metadata of a Workload. Raises Conflict if anything that matters has changed."""
        obj = await self._client.get(self._resources[WORKLOAD], before.meta.name, before.meta.namespace)
        self._on_write(WORKLOAD, obj, False)
        now = workload(obj) if before.job == NO_JOB else workload_with_job(obj)  # as it was read before
        if gave_up(before):
            now = replace(now, job=before.job, label_values=before.label_values)
        now_as_before = replace(
            now, meta=before.meta, same_job=before.same_job, nominated_since=before.nominated_since
        )
        if now.meta.uid != before.meta.uid or now_as_before != before:
            raise Conflict(f"Workload {before.label} has changed meanwhile")
        return now.meta

    async def _nominate(self, action: Nominate) -> Object:
        """Apply the nominations as Kueue's field manager with all it owns, so that Kueue can clear them."""
        resource = self._resources[WORKLOAD]
        obj = await self._client.get(resource, action.name, action.namespace)
        version = applied_version(obj, KUEUE_ADMISSION)
        if version not in ("", resource.api_version):
            with contextlib.suppress(NotFound):  # that version is no longer served: Kueue was updated
                old = WORKLOAD.at(version.rpartition("/")[2])
                obj, resource = await self._client.get(old, action.name, action.namespace), old
        if obj["metadata"]["resourceVersion"] != action.workload.meta.resource_version:
            self._on_write(WORKLOAD, obj, False)
            raise Conflict(f"Workload {action.workload.label} has changed meanwhile")
        body = nomination_body(obj, action.clusters)
        return await self._client.apply(
            resource, body, subresource="status", force=True, manager=KUEUE_ADMISSION
        )

    async def _apply(self, action: Apply) -> Outcome:
        resource = self._resources[action.kind]
        observed = action.observed
        try:
            # Without force if none was observed: then an object of someone else is a conflict.
            after = await self._client.apply(resource, action.body, force=observed is not None)
        except ApiError as error:
            replaceable = isinstance(error, Refused) and error.status == 422 and "spec" in action.body
            if observed is None or not replaceable:
                raise _without_data(error, action) from None
            after = await self._replace_spec(resource, action, observed.spec, observed.meta)
        else:
            spec = written_spec(action.kind, after)
            if not holds(spec, action.body.get("spec", {})):
                after = await self._replace_spec(resource, action, spec, meta_of(after))
        return action.kind, after, False

    async def _replace_spec(
        self, resource: Resource, action: Apply, spec: Mapping[str, Any], meta: Meta
    ) -> Object:
        """Remove what others have put into a field of ours, which an apply cannot do."""
        applied = action.body["metadata"]
        metadata = {key: applied[key] for key in ("labels", "uid") if key in applied}
        if "resourceVersion" in applied:
            metadata["resourceVersion"] = meta.resource_version
        wanted = action.body["spec"]
        beside = {key: value for key, value in spec.items() if key not in wanted}
        patch = {"metadata": metadata, "spec": merge_patch(spec, beside | wanted)}
        return await self._client.merge(resource, action.name, patch, namespace=applied.get("namespace"))

    async def _delete(self, action: Delete) -> Outcome:
        resource = self._resources[action.kind]
        try:
            after = await self._client.delete(
                resource, action.name, action.namespace, uid=action.uid, version=action.version
            )
        except NotFound:
            after = {}
        if after.get("kind") == action.kind.kind:
            return action.kind, after, False
        metadata = {"name": action.name, "namespace": action.namespace, "uid": action.uid}
        return action.kind, {"metadata": metadata}, True

    async def _set_status(self, action: SetCondition | SetStatus) -> Outcome | None:
        """Apply a status. Its guard is the resourceVersion: of a status, API servers ignore the uid."""
        metadata, status = {"name": action.name, "resourceVersion": action.version}, {}
        if isinstance(action, SetCondition):
            status = {"conditions": [action.condition]}
        else:
            metadata |= {"namespace": action.namespace} if action.namespace else {}
            status = action.status
        body = {"metadata": metadata, "status": status}
        resource = self._resources[action.kind]
        try:
            after = await self._client.apply(resource, body, subresource="status", force=True)
        except NotFound:
            log.debug("already gone", kind=action.kind.kind, name=action.name)
            return None
        return action.kind, after, False


_VERBS_AND_MESSAGES: Mapping[type[Action], tuple[str, str]] = {
    Apply: ("apply", "applied"),
    Delete: ("delete", "deleted"),
    SetCondition: ("apply_status", "condition set"),
    SetStatus: ("apply_status", "status set"),
    SetCheckStates: ("apply_status", "Workload answered"),
    Nominate: ("apply_status", "Workload nominated"),
}
"""Action → its verb in the metrics, and its message in the log."""


def _details(action: Action) -> dict[str, Any]:
    if isinstance(action, SetCondition):
        return {key: action.condition[key] for key in ("status", "reason", "message")}
    if isinstance(action, SetStatus):
        return {"namespace": action.namespace, **action.status}
    if isinstance(action, SetCheckStates):
        states = {entry["name"]: f"{entry['state']}: {entry['message']}" for entry in action.entries}
        return {"namespace": action.namespace, "checks": states}
    if isinstance(action, Nominate):
        return {"namespace": action.namespace, "clusters": list(action.clusters)}
    return {}


def _workload_error(error: BaseException) -> BaseException:
    return (
        WorkloadWritesFailed(error.message, retry_after=error.retry_after)
        if isinstance(error, ApiError) and not isinstance(error, Postponed)
        else error
    )


def _raise_first(errors: Iterable[BaseException]) -> None:
    """Raise the first error, an unexpected one last, and one that only waits after others."""
    if raised := list(errors):
        waits = HeldBack | Postponed
        raise min(raised, key=lambda error: (not isinstance(error, ApiError), isinstance(error, waits)))


def _without_data(error: ApiError, action: Apply) -> ApiError:
    """Return an error without data of the Secret, which an admission webhook may quote."""
    if action.kind is not SECRET or not error.status:
        return error
    where = action.body["metadata"].get("namespace")
    message = (
        f"Secret {where}/{action.name}: refused with HTTP {f'{error.status} {error.reason}'.strip()}: "
        f"may we patch and create Secrets in namespace {where}, or does an admission webhook say no?"
    )
    return type(error)(message, status=error.status, reason=error.reason, retry_after=error.retry_after)


def merge_patch(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> Object:
    """Return the JSON merge patch (RFC 7396) that makes `wanted` of `current`."""
    patch: Object = {key: None for key in current if key not in wanted}
    for key, value in wanted.items():
        before = current.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            if inner := merge_patch(before, value):
                patch[key] = inner
        elif before != value:
            patch[key] = value
    return patch
