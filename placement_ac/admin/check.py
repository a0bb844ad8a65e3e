"""
Find out whether the controller can work on a hub, and does: its kinds, its rights, its Lease.

It only reads, and creates SelfSubjectAccessReviews.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

from placement_ac.admin.rights import RightTarget, needed_rights
from placement_ac.config.policy import capacity_policy
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    ANNOTATION_RECONCILED,
    CLUSTER_PROFILE,
    INVENTORY,
    KUEUE,
    LEASE,
    MANIFEST_WORK,
    OCM_AUTHENTICATION,
    OCM_CLUSTER,
    OCM_RBAC,
    OCM_WORK,
    PERMISSION,
    Kind,
)
from placement_ac.core.api.errors import NotFound, Refused
from placement_ac.core.api.fields import get_str
from placement_ac.core.inputs.kinds import REQUIRED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.kube.client import Client, Object, gather_all
from placement_ac.workers.queries import ACCESS_REVIEW

REVIEWS_AT_ONCE: Final = 16
POLL_SECONDS: Final = 0.25
LEASES_TO_WAIT: Final = 2
"""How many durations of the Lease a controller may take to lead and to reconcile: one may have died."""
_OWNERS: Final = {
    KUEUE: "Kueue",
    OCM_CLUSTER: "OCM",
    OCM_WORK: "OCM",
    OCM_AUTHENTICATION: "OCM's addon managed-serviceaccount",
    OCM_RBAC: "OCM's addon cluster-permission",
    INVENTORY: "the CRD of ClusterProfiles",
}
"""API group → what serves it."""


class Result(NamedTuple):
    """One thing that was checked; `problem` is "" if it is right, else what to do, and why."""

    subject: str
    problem: str = ""
    note: str = ""


async def results(
    client: Client, settings: Settings, provisioning: ProvisioningPolicy, *, controller: bool
) -> AsyncIterator[Result]:
    """Yield what is checked: with `controller` also whether one runs, once the rest is right.

    Raises ApiError.
    """
    is_right = True
    kinds = tuple(_needed_kinds(settings))
    served = await client.discover(kinds)
    for kind in kinds:
        is_right = is_right and kind in served
        yield Result(f"kind {kind}", "" if kind in served else _not_served(kind))
    needed = needed_rights(settings, provisioning)
    slots = asyncio.Semaphore(REVIEWS_AT_ONCE)
    pairs = [(target, verb) for target, verbs in needed.items() for verb in verbs]
    answers = await gather_all(_is_allowed(client, slots, *pair) for pair in pairs)
    allowed = dict(zip(pairs, answers, strict=True))
    for target, verbs in needed.items():
        missing = [verb for verb in verbs if not allowed[target, verb]]
        grant = f"grant the account {', '.join(missing)} (docs/install.md, Permissions)"
        is_right = is_right and not missing
        yield Result(f"rights on {target}", grant if missing else "", ", ".join(verbs))
    if controller and is_right:
        yield await _controller(client, settings)


def _needed_kinds(settings: Settings) -> Iterator[Kind]:
    """Yield the kinds of CRDs without which the controller waits, or an option of these settings does."""
    yield from (kind for kind in REQUIRED_KINDS if kind.group)
    if settings.credentials_provision != "none":
        yield from (ACCOUNT, PERMISSION)
    if settings.access_providers or settings.credentials_form == "cluster-profile":
        yield CLUSTER_PROFILE
    if settings.worker_setup != "none":
        yield MANIFEST_WORK


def _not_served(kind: Kind) -> str:
    return f"install {_OWNERS[kind.group]}: the hub serves it in no version of {', '.join(kind.versions)}"


async def _is_allowed(client: Client, slots: asyncio.Semaphore, target: RightTarget, verb: str) -> bool:
    body = {
        "apiVersion": ACCESS_REVIEW.api_version,
        "kind": ACCESS_REVIEW.of.kind,
        "spec": {"resourceAttributes": target._asdict() | {"verb": verb}},
    }
    async with slots:
        answer = await client.request("POST", ACCESS_REVIEW.path(), body)
    return answer["status"]["allowed"] is True


async def _controller(client: Client, settings: Settings) -> Result:
    """Wait until a controller renews the Lease and says there that it has reconciled."""
    if not settings.leader_elect:
        return Result("controller", note="unknown: with leader-elect=false it has no Lease")
    namespace, name = capacity_policy(settings).namespace, settings.leader_elect_resource_name
    before: Object | None = None
    end = time.monotonic() + LEASES_TO_WAIT * settings.leader_elect_lease_duration
    while True:
        try:
            lease = await client.get(LEASE.at("v1"), name, namespace)
        except NotFound:
            lease = {}
        except Refused as refused:
            return Result("controller", f"grant the account get on its Lease: {refused.message}")
        before = before or lease
        leader = get_str(lease, "spec", "holderIdentity")
        renewed = get_str(lease, "spec", "renewTime") != get_str(before, "spec", "renewTime")
        reconciled = get_str(lease, "metadata", "annotations", ANNOTATION_RECONCILED) == "true"
        if leader and renewed and reconciled:
            return Result("controller", note=f"{leader} leads, and has reconciled")
        if time.monotonic() > end:
            return Result("controller", _not_running(f"Lease {namespace}/{name}", leader, renewed))
        await asyncio.sleep(POLL_SECONDS)


def _not_running(lease: str, leader: str, renewed: bool) -> str:
    if leader and renewed:
        return f"see its log and its /readyz: {leader} leads, but has not reconciled yet"
    held = f"{leader} holds {lease} and does not renew it" if leader else f"none holds {lease}"
    return f"start it, or see why it does not run: {held}"
