"""
Turn actions into writes, phase by phase, and tell the world what came of them.

Decides nothing. The writes of one phase go out side by side; the next phase
begins when all of them are done. Raises ApiError; what was done stays done.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import structlog

from placement_ac.core.api.constants import KUEUE_ADMISSION, SECRET, WORKLOAD, Kind, Resource
from placement_ac.core.api.decode import meta_of, workload
from placement_ac.core.api.errors import ApiError, Conflict, NotFound, Refused, WorkloadTrouble
from placement_ac.core.api.managed_fields import applied_version, nomination_body
from placement_ac.core.api.objects import Meta, Workload
from placement_ac.core.plan.diff import Action, Apply, Delete, Nominate, Phase, SetCheckStates, SetCondition
from placement_ac.kube.client import Client, Object
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.observability.metrics import Metrics

log = structlog.get_logger(__name__)

UNCHANGED_TRIES: Final = 4
"""Tries to answer a Workload that others write at the same time, while it stays what was seen."""

Outcome = tuple[Kind, Object, bool]
"""What a write gave back: the object as it is now, and whether it has gone."""
OnWrite = Callable[[Kind, Object, bool], None]
"""Called with an Outcome."""


class Writer:
    """Writes to one hub, in the versions that it serves."""

    def __init__(
        self,
        client: Client,
        resources: Mapping[Kind, Resource],
        on_write: OnWrite,
        metrics: Metrics | None = None,
    ) -> None:
        self._client = client
        self._resources = resources
        self._on_write = on_write
        self._logged = LogDeduplicator()
        self._metrics = metrics or Metrics()
        self._writers: Mapping[type[Action], Callable[[Any], Awaitable[Outcome | None]]] = {
            Apply: self._apply,
            Delete: self._delete,
            SetCondition: self._set_condition,
            SetCheckStates: self._on_workload,
            Nominate: self._on_workload,
        }
        """Each returns what came of it; None: there was nothing to write to."""

    async def execute(self, phases: Iterable[Phase], done: list[Action] | None = None) -> None:
        """Do all of it, or raise the first error of the phase in which one came up.

        Workloads do not stand in each other's way: WorkloadTrouble is raised when all is done.
        What was done is added to `done`, whatever is raised.
        """
        trouble: list[object] = []
        for phase in phases:
            results = await _side_by_side([self.write(action) for action in phase])
            if done is not None:
                done += [action for action, result in zip(phase, results, strict=True) if result is None]
            if phase and isinstance(phase[0], SetCheckStates | Nominate):
                trouble += results
            else:
                _raise_first(results)
        _raise_trouble(trouble)

    async def write(self, action: Action) -> None:
        """Do one thing; raises the error that keeps it from being done."""
        began = time.monotonic()
        try:
            outcome = await self._writers[type(action)](action)
        except ApiError as error:
            self._metrics.wrote(action.kind.kind, _VERBS[type(action)], error)
            raise
        self._metrics.wrote(action.kind.kind, _VERBS[type(action)])
        if outcome:
            self._on_write(*outcome)
            took = round((time.monotonic() - began) * 1000, 1)
            _log_action(action, kind=action.kind.kind, name=action.name, took_ms=took, **_details(action))

    async def _on_workload(self, action: SetCheckStates | Nominate) -> Outcome | None:
        """Write to a Workload; what the API server has against one of them is no fault of the check's."""
        answer = isinstance(action, SetCheckStates)
        try:
            after = await (
                self._answer(action) if isinstance(action, SetCheckStates) else self._nominate(action)
            )
        except NotFound:
            log.debug("already gone", kind=action.kind.kind, name=action.name)
        except Refused as refused:
            if not answer and refused.status == 422:  # Kueue: it has been placed meanwhile
                log.debug("already placed", name=action.name, error=refused.message)
                return None
            log.log(
                self._logged.level(action.workload.meta.uid, refused.message),
                "the API server refused a write to a Workload",
                namespace=action.namespace,
                name=action.name,
                error=refused.message,
            )
            raise WorkloadTrouble(refused.message, retry_after=refused.retry_after) from refused
        else:
            self._logged.ended(action.workload.meta.uid)
            return WORKLOAD, after, False
        return None

    async def _answer(self, action: SetCheckStates) -> Object:
        """Apply our entries alone, on the version that was seen: whatever came between is a conflict.

        With force, or the entry that Kueue has put there would be a conflict for ever.
        """
        resource, meta = self._resources[WORKLOAD], action.workload.meta
        status = {"admissionChecks": list(action.entries)}
        for _ in range(UNCHANGED_TRIES):
            body = {"metadata": _identity(meta), "status": status}
            try:
                return await self._client.apply(resource, body, subresource="status", force=True)
            except Conflict:
                meta = await self._unchanged(action.workload)
        raise Conflict(f"Workload {action.workload.label} changes all the time")

    async def _unchanged(self, before: Workload) -> Meta:
        """Look again: Kueue writes a Workload several times in a row, mostly what is nothing to us."""
        found = await self._client.get(self._resources[WORKLOAD], before.meta.name, before.meta.namespace)
        self._on_write(WORKLOAD, found, False)
        now = workload(found)
        if now.meta.uid != before.meta.uid or replace(now, meta=before.meta) != before:
            raise Conflict(f"Workload {before.label} has changed meanwhile")
        return now.meta

    async def _nominate(self, action: Nominate) -> Object:
        """Apply the nominations as Kueue's own manager, with all that it owns: or it cannot clear them."""
        resource = self._resources[WORKLOAD]
        found = await self._client.get(resource, action.name, action.namespace)
        version = applied_version(found, KUEUE_ADMISSION)
        if version not in ("", resource.api_version):
            resource = WORKLOAD.at(version.rpartition("/")[2])
            found = await self._client.get(resource, action.name, action.namespace)
        if found["metadata"]["resourceVersion"] != action.workload.meta.resource_version:
            self._on_write(WORKLOAD, found, False)
            raise Conflict(f"Workload {action.workload.label} has changed meanwhile")
        body = nomination_body(found, action.clusters)
        return await self._client.apply(
            resource, body, subresource="status", force=True, manager=KUEUE_ADMISSION
        )

    async def _apply(self, action: Apply) -> Outcome:
        resource = self._resources[action.kind]
        observed = action.observed
        try:
            # Without force while nobody was seen to have made it: then a stranger's object is a conflict.
            after = await self._client.apply(resource, action.body, force=observed is not None)
        except ApiError as error:
            mendable = isinstance(error, Refused) and error.status == 422 and "spec" in action.body
            if observed is None or not mendable:
                raise _without_data(error, action) from None
            after = await self._replace_spec(resource, action, observed.spec, observed.meta)
        else:
            if after.get("spec") != action.body.get("spec"):
                after = await self._replace_spec(resource, action, after.get("spec") or {}, meta_of(after))
        return action.kind, after, False

    async def _replace_spec(
        self, resource: Resource, action: Apply, spec: Mapping[str, Any], meta: Meta
    ) -> Object:
        """Take out of a spec of ours what others put in: an apply cannot, as it is theirs."""
        applied = action.body["metadata"]
        patch: Object = {
            "metadata": {"labels": applied["labels"]},
            "spec": merge_patch(spec, action.body["spec"]),
        }
        if "uid" in applied:
            patch["metadata"]["uid"] = applied["uid"]
        if "resourceVersion" in applied:
            patch["metadata"]["resourceVersion"] = meta.resource_version
        namespace = action.body["metadata"].get("namespace")
        return await self._client.merge(resource, action.name, patch, namespace=namespace)

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

    async def _set_condition(self, action: SetCondition) -> Outcome | None:
        body = {
            "metadata": {"name": action.check, "uid": action.uid},
            "status": {"conditions": [action.condition]},
        }
        resource = self._resources[action.kind]
        try:
            after = await self._client.apply(resource, body, subresource="status", force=True)
        except NotFound:
            log.debug("already gone", kind=action.kind.kind, name=action.name)
            return None
        return action.kind, after, False


async def _side_by_side(work: Sequence[Coroutine[Any, Any, None]]) -> list[BaseException | None]:
    """Return what each came to, when all have ended; mostly there is one, which needs no task of its own."""
    if len(work) != 1:
        return await asyncio.gather(*work, return_exceptions=True)
    try:
        await work[0]
    except Exception as error:  # raised when it is known what was done
        return [error]
    return [None]


def _log_action(action: Action, **keys: object) -> None:
    if isinstance(action, Apply):
        log.info("applied", **keys)
    elif isinstance(action, Delete):
        log.info("deleted", **keys)
    elif isinstance(action, SetCondition):
        log.info("condition set", **keys)
    elif isinstance(action, SetCheckStates):
        log.info("Workload answered", **keys)
    else:
        log.info("Workload nominated", **keys)


_VERBS: Mapping[type[Action], str] = {
    Apply: "apply",
    Delete: "delete",
    SetCondition: "apply_status",
    SetCheckStates: "apply_status",
    Nominate: "apply_status",
}


def _identity(meta: Meta) -> Object:
    return {
        "name": meta.name,
        "namespace": meta.namespace,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def _details(action: Action) -> dict[str, Any]:
    if isinstance(action, SetCondition):
        return {key: action.condition[key] for key in ("status", "reason", "message")}
    if isinstance(action, SetCheckStates):
        told = {entry["name"]: f"{entry['state']}: {entry['message']}" for entry in action.entries}
        return {"namespace": action.namespace, "checks": told}
    if isinstance(action, Nominate):
        return {"namespace": action.namespace, "clusters": list(action.clusters)}
    return {}


def _raise_trouble(results: Iterable[object]) -> None:
    errors = [result for result in results if isinstance(result, BaseException)]
    if any(not isinstance(error, ApiError) for error in errors):
        _raise_first([error for error in errors if not isinstance(error, ApiError)])
    for error in errors:
        if isinstance(error, ApiError):
            raise WorkloadTrouble(error.message, retry_after=error.retry_after)


def _raise_first(results: Iterable[object]) -> None:
    for result in results:
        if isinstance(result, ApiError):
            raise result
    for result in results:
        if isinstance(result, BaseException):
            raise result


def _without_data(error: ApiError, action: Apply) -> ApiError:
    """Return an error that quotes nothing of a Secret: an admission webhook may, with any status."""
    if action.kind is not SECRET or not error.status:
        return error
    where = action.body["metadata"].get("namespace")
    message = (
        f"Secret {where}/{action.name}: refused with HTTP {error.status} {error.reason}: "
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
