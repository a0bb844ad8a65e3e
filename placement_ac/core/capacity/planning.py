"""
Plan the status of the CapacityProviders that follow a Placement: the sums, and the condition.

Pure. Only a difference is written. While a listed cluster's quota is not known, the published sum stays for a
while: a restart must not lower the quota of the hub. As long as the condition is not True, Kueue leaves the
quota of its queues as it is, so whatever is wrong changes no capacity.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CONDITION_CAPACITY,
    CONDITION_MESSAGE_MAX,
    INVALID_CAPACITY,
    MISCONFIGURED,
    OCM_CLUSTER,
    OUR_CONTROLLER,
    PLACEMENT,
    SOURCE_UNAVAILABLE,
    SYNCHRONIZED,
)
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import CapacityProvider
from placement_ac.core.api.quantities import format_milli, milli
from placement_ac.core.api.text import NAMES_SHOWN, enumeration, joined
from placement_ac.core.capacity.quota import ClusterQuota, Quota, cluster_quota, sums
from placement_ac.core.inputs.state import NOTHING, Body, Since, SinceKind, Snapshot, Verdict, WantedCapacity
from placement_ac.core.selection.selection import soonest

QUOTA_UNKNOWN_SECONDS: Final = 60.0
"""How long a published sum stays while the quota of a listed cluster is not known."""
FIRST_QUOTA_SECONDS: Final = 2.0
"""How long the first sum waits for it."""


class ListedClusters(NamedTuple):
    """The clusters of a Placement's list."""

    counted: Mapping[str, str] = NOTHING
    """Those that get jobs → their MultiKueueClusters."""
    leaving: Mapping[str, str] = NOTHING
    """The others → why they do not count."""


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """The status of CapacityProviders that are to change, and the workers to ask."""

    wanted: tuple[WantedCapacity, ...] = ()
    ask: tuple[str, ...] = ()
    """MultiKueueClusters whose workers are to be asked for their queues."""
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def plan_capacity(
    snapshot: Snapshot, listed: ListedClusters, *, misconfigured: str = "", paused: str = ""
) -> CapacityPlan:
    """Return the status that each CapacityProvider is to get.

    `misconfigured`: what to correct before there can be any sum. `paused`: why no list may change for now.
    """
    providers = snapshot.capacity.providers
    misconfigured = misconfigured or _without_queues(snapshot)
    if misconfigured or paused:
        reason = MISCONFIGURED if misconfigured else SOURCE_UNAVAILABLE
        verdict = Verdict("False", reason, misconfigured or paused)
        concerned = [one for one in providers if misconfigured or not _is_in_force(one)]
        kept = [since for since in snapshot.all_ages if since.kind is SinceKind.QUOTA_UNKNOWN]
        return CapacityPlan(
            _wanted(snapshot, ((one, verdict, None) for one in concerned)), (), frozenset(kept)
        )
    # By name: another order of the clusters is no reason to write.
    quotas = [cluster_quota(snapshot, *entry) for entry in sorted(listed.counted.items())]
    unknown = [Since(SinceKind.QUOTA_UNKNOWN, one.cluster) for one in quotas if one.quota is None]
    awaited = () if any(one.is_ours for one in quotas) else unknown
    waits = {provider.meta.name: _waits(snapshot, provider, awaited) for provider in providers}
    verdicts = [
        (provider, *_judged(snapshot, provider, quotas, listed.leaving))
        for provider in providers
        if not waits[provider.meta.name]
    ]
    return CapacityPlan(
        _wanted(snapshot, verdicts),
        tuple(one.ask for one in quotas if one.ask),
        frozenset(unknown),
        soonest((*(one.ask_after for one in quotas), *(left or None for left in waits.values()))),
    )


def _without_queues(snapshot: Snapshot) -> str:
    if snapshot.capacity.queues or not snapshot.checks.ours:
        return ""
    checks = joined(check.meta.name for check in snapshot.checks.ours)
    return (
        f"let a ClusterQueue with a LocalQueue list {ADMISSION_CHECK.kind} {checks}: only the quota of such"
        " queues on the workers counts, and there is none"
    )


def _is_in_force(provider: CapacityProvider) -> bool:
    """Whether Kueue uses what was published."""
    now = provider.synchronized
    return provider.capacity is not None and now is not None and now.status == "True"


def _waits(snapshot: Snapshot, provider: CapacityProvider, unknown: Iterable[Since]) -> float:
    """Return for how many seconds its status stays as it is, because quota may still become known."""
    seconds = FIRST_QUOTA_SECONDS if provider.capacity is None else QUOTA_UNKNOWN_SECONDS
    return max((0.0, *[seconds - snapshot.age(since) for since in unknown]))


def _judged(
    snapshot: Snapshot, provider: CapacityProvider, quotas: Sequence[ClusterQuota], leaving: Mapping[str, str]
) -> tuple[Verdict, Quota | None]:
    """Return the condition and the capacity; None: it stays as it is."""
    if problem := parameters_problem(provider):
        return Verdict("False", MISCONFIGURED, problem), None
    if invalid := _freezing(quotas):
        return Verdict("False", INVALID_CAPACITY, joined(invalid, "; ")), None
    known = {one.cluster: one.quota for one in quotas if one.quota is not None}
    unknown = {one.cluster: f"quota unknown: {one.why}" for one in quotas if one.quota is None}
    if unknown and not known:
        first = next(one.why for one in quotas)
        return Verdict("False", SOURCE_UNAVAILABLE, f"{first}; no quota is known: {_with_why(unknown)}"), None
    total = sums((_zeros(snapshot), *known.values()))
    amounts = {flavor: total[flavor] for flavor in provider.flavors if total.get(flavor)}
    others = {**unknown, **leaving}
    bounded = {one.cluster: one.remark for one in quotas if one.remark}
    parts = (
        f"the sum of {_names(list(known))}" if known else "no cluster is listed",
        f"no more counts than its nodes can allocate or an admin allows: {_with_why(bounded)}"
        if bounded
        else "",
        f"left out: {_with_why(others)}" if others else "",
        _without_quota(flavor for flavor in provider.flavors if flavor not in amounts),
    )
    return Verdict("True", SYNCHRONIZED, "; ".join(filter(None, parts))), amounts


def _freezing(quotas: Sequence[ClusterQuota]) -> list[str]:
    """Return the wrong quantities that keep the sum as it is.

    A worker whose answer is wrong is left out, as one that does not answer; unless nothing else is known.
    """
    invalid = [one for one in quotas if one.invalid]
    if any(one.quota is not None for one in quotas):
        invalid = [one for one in invalid if one.is_ours]
    return [f"{one.cluster}: {one.why}" for one in invalid]


def parameters_problem(provider: CapacityProvider) -> str:
    """Return what to correct in its spec; "" if it names a Placement."""
    if provider.placement:
        return ""
    if provider.problem:
        return f"correct the spec: it cannot be read: {provider.problem}"
    parameters = provider.parameters
    found = f"{parameters.kind}.{parameters.api_group} {parameters.name!r}" if parameters else "nothing"
    return (
        f"set spec.parameters to apiGroup: {OCM_CLUSTER}, kind: {PLACEMENT.kind} and the name of a Placement:"
        f" they name {found}"
    )


def no_check(placement: str) -> str:
    """Return what to do if no AdmissionCheck of ours names the Placement."""
    return (
        f"create an {ADMISSION_CHECK.kind} with controllerName {OUR_CONTROLLER} and the same parameters:"
        f" without it no cluster is listed for {PLACEMENT.kind} {placement}"
    )


def _zeros(snapshot: Snapshot) -> Quota:
    """Return 0 of all that the hub's queues cover: a pair that is left out would keep its quota there."""
    return {flavor: dict.fromkeys(resources, 0) for flavor, resources in snapshot.capacity.covered.items()}


def _without_quota(flavors: Iterable[str]) -> str:
    names = joined(flavors)
    return f"no queue has ResourceFlavor {names}" if names else ""


def _names(names: Sequence[str]) -> str:
    return enumeration(names, "and") if len(names) <= NAMES_SHOWN else joined(names)


def _with_why(clusters: Mapping[str, str]) -> str:
    return joined(f"{cluster} ({why})" for cluster, why in sorted(clusters.items()))


# -- the status


def _wanted(
    snapshot: Snapshot, verdicts: Iterable[tuple[CapacityProvider, Verdict, Quota | None]]
) -> tuple[WantedCapacity, ...]:
    return tuple(
        WantedCapacity(provider, _status(snapshot, provider, verdict, amounts))
        for provider, verdict, amounts in verdicts
        if not _is_set(provider, verdict, amounts)
    )


def _is_set(provider: CapacityProvider, verdict: Verdict, amounts: Quota | None) -> bool:
    now = provider.synchronized
    return (
        now is not None
        and (now.status, now.reason, now.message) == (verdict.status, verdict.reason, _message(verdict))
        and now.observed_generation == provider.meta.generation
        and (amounts is None or amounts == _published(provider))
    )


def _published(provider: CapacityProvider) -> dict[str, dict[str, int | None]]:
    return {
        flavor: {resource: milli(amount) for resource, amount in resources.items()}
        for flavor, resources in (provider.capacity or {}).items()
    }


def _status(snapshot: Snapshot, provider: CapacityProvider, verdict: Verdict, amounts: Quota | None) -> Body:
    """Return the whole status: with server-side apply, a capacity that is left out would go."""
    now = provider.synchronized
    turned = now is None or now.status != verdict.status or not now.last_transition_time
    condition = {
        "type": CONDITION_CAPACITY,
        "status": verdict.status,
        "reason": verdict.reason,
        "message": _message(verdict),
        "observedGeneration": provider.meta.generation,
        "lastTransitionTime": format_time(snapshot.now) if turned or not now else now.last_transition_time,
    }
    if amounts is None:
        flavors = provider.capacity
    else:
        flavors = {flavor: _as_text(resources) for flavor, resources in amounts.items()}
    entries = [{"name": name, "resources": dict(resources)} for name, resources in (flavors or {}).items()]
    return {"conditions": [condition]} | ({} if flavors is None else {"capacity": {"flavors": entries}})


def _as_text(resources: Mapping[str, int]) -> dict[str, str]:
    return {resource: format_milli(amount) for resource, amount in sorted(resources.items())}


def _message(verdict: Verdict) -> str:
    return verdict.message[:CONDITION_MESSAGE_MAX]
