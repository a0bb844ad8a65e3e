"""
What is to be written for the credentials of one cluster: an account, its rights, and our kubeconfig.

Pure. They are made while a check of ours selects the cluster and nobody else has put credentials
there, and stay as long as a MultiKueueCluster stands on them. Then they go, the Secret first; so do those
of a cluster that has left OCM, and those under a name that accounts had before.
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from placement_ac.core.api.constants import (
    ACCOUNT,
    ANNOTATION_ACCOUNT,
    KUBECONFIG_KEY,
    LABEL_CLUSTER,
    LABEL_MANAGED_BY,
    LABEL_SYNC,
    MANAGED_BY,
    OCM_AUTHENTICATION,
    PERMISSION,
    SECRET,
    SETTLE_SECONDS,
    Kind,
)
from placement_ac.core.api.decode import digest_of
from placement_ac.core.api.objects import WritableObject
from placement_ac.core.credentials.readiness import kubeconfig_of, name_conflict
from placement_ac.core.inputs.state import Body, ProvisioningInputs, Timer, TimerKind
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.core.plan.diff import Action, Apply, Delete, Phase, body_of, is_same

MISSING: Final = Timer(TimerKind.CREDENTIALS_MISSING)
UNNEEDED: Final = Timer(TimerKind.CREDENTIALS_UNNEEDED)
NO_ANNOTATIONS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class ProvisioningPlan:
    """What is to be done for one cluster."""

    phases: tuple[Phase, ...] = ()
    orphan_phases: tuple[Phase, ...] = ()
    """What was made under another name: that it cannot be deleted is in nobody's way."""
    timers: frozenset[Timer] = frozenset()
    recheck_after: float | None = None


def plan_provisioning(seen: ProvisioningInputs) -> ProvisioningPlan:
    """Return the writes that bring the credentials of a cluster in order."""
    if not seen.policy.provision:
        return ProvisioningPlan()
    strays = ((kind, obj) for kind, obj in seen.orphans if obj.applied_fields.applied)
    return replace(_of_now(seen), orphan_phases=tuple(_deleted(strays)))


def _of_now(seen: ProvisioningInputs) -> ProvisioningPlan:
    """Return the same, for what is under the name that accounts have now."""
    if not seen.in_use and (seen.found or not seen.selected or seen.managed is None):
        return _unneeded(seen)
    left = _patience(seen)
    if left > 0:
        return ProvisioningPlan(timers=frozenset({MISSING}), recheck_after=left)
    marks = frozenset({MISSING} & seen.ages.keys())
    if not seen.owners or seen.managed is None:
        return ProvisioningPlan(timers=marks)
    # Whatever else is refused, the token of a cluster that is in must be renewed.
    actions = sorted(_applied(seen), key=lambda action: not _renews(seen, action))
    if not seen.policy.served or name_conflict(seen):
        actions = [action for action in actions if _renews(seen, action)]
    return ProvisioningPlan(tuple((action,) for action in actions), timers=marks)


def _unneeded(seen: ProvisioningInputs) -> ProvisioningPlan:
    """Take them away, but for a decision that flickers; with what others made, look again when it ends."""
    ends = (seen.found.expires - seen.now).total_seconds() if seen.found and seen.found.expires else None
    left = seen.policy.retention - seen.ages.get(UNNEEDED, 0.0)
    if left > 0 and seen.managed and not seen.found and _is_there(seen):
        return ProvisioningPlan(timers=frozenset({UNNEEDED}), recheck_after=left)
    marks = frozenset({UNNEEDED} & seen.ages.keys())  # a delete that fails does not wait anew
    again = max(ends, 0.0) if ends is not None else None
    return ProvisioningPlan(tuple(_taken_away(seen)), timers=marks, recheck_after=again)


def _is_there(seen: ProvisioningInputs) -> bool:
    return any(obj is not None for obj in (seen.secret, seen.account, seen.permission))


def _renews(seen: ProvisioningInputs, action: Action) -> bool:
    mine = seen.on_secret and (seen.secret is None or seen.secret.ours)
    return mine and isinstance(action, Apply) and action.kind is SECRET


def _patience(seen: ProvisioningInputs) -> float:
    """Return how long to wait: a Secret of somebody else's may be replaced by delete and create."""
    replaced = seen.known and not seen.in_use and seen.account is None
    return SETTLE_SECONDS - seen.ages.get(MISSING, 0.0) if replaced else 0.0


def _applied(seen: ProvisioningInputs) -> Iterable[Action]:
    """Yield them in their order.

    OCM's controller looks for the account when it first sees a permission, and does not look again
    before it changes (cluster-permission at 6a3e08a, controllers/): so the account works before there is
    a permission, and a new account changes it.
    """
    labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_CLUSTER: seen.cluster}
    sync = {LABEL_SYNC: "true"} if _is_synced(seen) else {}
    yield from _apply(seen, ACCOUNT, seen.account, labels | sync, account_spec(seen.policy.validity))
    if seen.account and seen.account.in_force:
        known = {ANNOTATION_ACCOUNT: seen.account.meta.uid}
        yield from _apply(seen, PERMISSION, seen.permission, labels, permission_spec(seen), known)
    if seen.policy.form == "kubeconfig" or seen.on_secret:
        yield from _apply_secret(seen, labels)
    elif seen.secret and _is_to_go(seen.secret):
        yield _delete(SECRET, seen.secret)


def _is_synced(seen: ProvisioningInputs) -> bool:
    """Whether OCM is to copy the token to the ClusterProfile: if it did, as long as that is stood on."""
    before = seen.account is not None and seen.account.meta.labels.get(LABEL_SYNC) == "true"
    return seen.policy.form == "cluster-profile" or (before and seen.on_profile)


def _apply(
    seen: ProvisioningInputs,
    kind: Kind,
    observed: WritableObject | None,
    labels: Mapping[str, str],
    spec: Body,
    annotations: Mapping[str, str] = NO_ANNOTATIONS,
) -> Iterable[Apply]:
    told = observed is not None and annotations.items() <= observed.meta.annotations.items()
    if observed and (observed.meta.deleting or (told and is_same(observed, labels, seen.owners, spec))):
        return
    body = body_of(seen.name, labels, seen.owners, observed, seen.hub, namespace=seen.cluster)
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    yield Apply(kind, body | {"spec": spec}, observed)


def _apply_secret(seen: ProvisioningInputs, labels: Mapping[str, str]) -> Iterable[Apply]:
    kubeconfig, observed = kubeconfig_of(seen), seen.secret
    if isinstance(kubeconfig, Unusable) or (observed and observed.meta.deleting):
        return  # what is there stays: it may be good for a while yet
    is_new = observed is None or observed.digest != digest_of(kubeconfig)
    if is_new or not is_same(observed, labels, seen.owners, {}):
        body = body_of(seen.secret_name, labels, seen.owners, observed, seen.hub, namespace=seen.namespace)
        data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
        yield Apply(SECRET, body | {"data": data}, observed)


def _taken_away(seen: ProvisioningInputs) -> Iterable[Phase]:
    things = ((SECRET, seen.secret), (ACCOUNT, seen.account), (PERMISSION, seen.permission))
    return _deleted((kind, obj) for kind, obj in things if obj)


def _deleted(things: Iterable[tuple[Kind, WritableObject]]) -> Iterable[Phase]:
    return ((_delete(kind, obj),) for kind, obj in things if _is_to_go(obj))


def _is_to_go(obj: WritableObject) -> bool:
    """Whether it may be deleted, and is not going already. Labels are easily copied with an object."""
    return (obj.applied_fields.applied or obj.handed_over) and not obj.meta.deleting


def _delete(kind: Kind, obj: WritableObject) -> Delete:
    return Delete(kind, obj.meta.name, obj.meta.uid, obj.meta.namespace)


def account_spec(validity: float) -> Body:
    """Return the `spec` of a ManagedServiceAccount; `validity` in seconds."""
    return {"rotation": {"enabled": True, "validity": go_duration(validity)}}


def permission_spec(seen: ProvisioningInputs) -> Body:
    """Return the `spec` of a ClusterPermission: the rules, bound to the account of the same name."""
    subject = {"apiGroup": OCM_AUTHENTICATION, "kind": ACCOUNT.kind, "name": seen.name}
    rules = [dict(rule) for rule in seen.policy.rules]
    return {"clusterRole": {"rules": rules}, "clusterRoleBinding": {"subject": subject}}


def go_duration(seconds: float) -> str:
    """Return a duration as Go writes it (`24h0m0s`), in whole seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s"
