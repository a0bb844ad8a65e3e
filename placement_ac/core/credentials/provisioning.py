"""
Plan the writes for the credentials of one cluster: an account, its rights, and our kubeconfig.

Pure. Credentials are provisioned while a check of ours selects the cluster and nobody else has put
credentials there, and stay as long as a MultiKueueCluster uses them. Then they are deleted, the Secret
first; so are those of a cluster that has left OCM, and those under a former account name.
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
from placement_ac.core.credentials.provisioned import kubeconfig_of, name_conflict
from placement_ac.core.inputs.provisioning import ProvisioningInputs
from placement_ac.core.inputs.state import NOTHING, Body, Since, SinceKind
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.core.plan.diff import Action, Apply, Delete, Phase, body_of, is_same

MISSING: Final = Since(SinceKind.CREDENTIALS_MISSING)
UNNEEDED: Final = Since(SinceKind.CREDENTIALS_UNNEEDED)


@dataclass(frozen=True, slots=True)
class ProvisioningPlan:
    """The writes for one cluster."""

    phases: tuple[Phase, ...] = ()
    orphan_phases: tuple[Phase, ...] = ()
    """The deletion of what was made under another name: that it fails delays nothing else."""
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None
    """Seconds after which the plan may change although nothing happens; None: it will not."""


def plan_provisioning(inputs: ProvisioningInputs) -> ProvisioningPlan:
    """Return the writes that bring the credentials of a cluster in order."""
    if not inputs.policy.provision:
        return ProvisioningPlan()
    orphans = ((kind, obj) for kind, obj in inputs.objects.orphans if obj.applied_fields.applied)
    return replace(_plan(inputs), orphan_phases=tuple(_deletions(orphans)))


def _plan(inputs: ProvisioningInputs) -> ProvisioningPlan:
    """Return the same, without what was made under another name."""
    usage, no_cluster = inputs.usage, inputs.objects.managed_cluster is None
    if not usage.in_use and (inputs.external or not usage.selected or no_cluster):
        return _plan_removal(inputs)
    left = _seconds_to_wait(inputs)
    if left > 0:
        return ProvisioningPlan(lasting=frozenset({MISSING}), requeue_after=left)
    lasting = frozenset({MISSING} & inputs.ages.keys())
    if not usage.owners or no_cluster:
        return ProvisioningPlan(lasting=lasting)
    # Whatever else is refused, the token of a listed cluster must be renewed.
    actions = sorted(_applies(inputs), key=lambda action: not _is_renewal(inputs, action))
    if not inputs.policy.served or name_conflict(inputs):
        actions = [action for action in actions if _is_renewal(inputs, action)]
    return ProvisioningPlan(tuple((action,) for action in actions), lasting=lasting)


def _plan_removal(inputs: ProvisioningInputs) -> ProvisioningPlan:
    """Delete what is not needed: if others' credentials replace it at once, else after the retention."""
    external, objects = inputs.external, inputs.objects
    existing = (objects.secret, objects.account, objects.permission)
    left = inputs.policy.retention - inputs.ages.get(UNNEEDED, 0.0)
    if left > 0 and objects.managed_cluster and not external and any(existing):
        return ProvisioningPlan(lasting=frozenset({UNNEEDED}), requeue_after=left)
    lasting = frozenset({UNNEEDED} & inputs.ages.keys())  # a delete that fails does not wait again
    ends = external.expires if external else None
    requeue_after = max((ends - inputs.now).total_seconds(), 0.0) if ends else None
    kinds = zip((SECRET, ACCOUNT, PERMISSION), existing, strict=True)
    return ProvisioningPlan(
        tuple(_deletions((kind, obj) for kind, obj in kinds if obj)),
        lasting=lasting,
        requeue_after=requeue_after,
    )


def _is_renewal(inputs: ProvisioningInputs, action: Action) -> bool:
    secret = inputs.objects.secret
    ours = inputs.usage.secret_used and (secret is None or secret.ours)
    return ours and isinstance(action, Apply) and action.kind is SECRET


def _seconds_to_wait(inputs: ProvisioningInputs) -> float:
    """Return how long to wait: others may replace their Secret by delete and create."""
    usage = inputs.usage
    replaced = usage.listed and not usage.in_use and inputs.objects.account is None
    return SETTLE_SECONDS - inputs.ages.get(MISSING, 0.0) if replaced else 0.0


def _applies(inputs: ProvisioningInputs) -> Iterable[Action]:
    """Yield the writes in their order.

    OCM's controller looks for the account when it first sees a permission, and does not look again
    before it changes (cluster-permission at 6a3e08a, controllers/): so the account works before there is
    a permission, and a new account changes it.
    """
    objects, policy = inputs.objects, inputs.policy
    labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_CLUSTER: inputs.cluster}
    # Synced accounts stay so as long as a MultiKueueCluster uses the ClusterProfile.
    synced = policy.form == "cluster-profile" or (objects.account_is_synced and inputs.usage.profile_used)
    sync = {LABEL_SYNC: "true"} if synced else {}
    yield from _apply(inputs, ACCOUNT, objects.account, labels | sync, account_spec(policy.validity))
    if objects.account and objects.account.in_force:
        known = {ANNOTATION_ACCOUNT: objects.account.meta.uid}
        yield from _apply(inputs, PERMISSION, objects.permission, labels, permission_spec(inputs), known)
    if policy.form == "kubeconfig" or inputs.usage.secret_used:
        yield from _apply_secret(inputs, labels)
    elif objects.secret and _is_deletable(objects.secret):
        yield _delete(SECRET, objects.secret)


def _apply(
    inputs: ProvisioningInputs,
    kind: Kind,
    observed: WritableObject | None,
    labels: Mapping[str, str],
    spec: Body,
    annotations: Mapping[str, str] = NOTHING,
) -> Iterable[Apply]:
    owners = inputs.usage.owners
    annotated = observed is not None and annotations.items() <= observed.meta.annotations.items()
    if observed and (observed.meta.deleting or (annotated and is_same(observed, labels, owners, spec))):
        return
    body = body_of(inputs.account_name, labels, owners, observed, inputs.hub, namespace=inputs.cluster)
    if annotations:
        body["metadata"]["annotations"] = dict(annotations)
    yield Apply(kind, body | {"spec": spec}, observed)


def _apply_secret(inputs: ProvisioningInputs, labels: Mapping[str, str]) -> Iterable[Apply]:
    kubeconfig, observed, owners = kubeconfig_of(inputs), inputs.objects.secret, inputs.usage.owners
    if isinstance(kubeconfig, Unusable) or (observed and observed.meta.deleting):
        return  # the present one stays: it may be good for a while yet
    is_new = observed is None or observed.digest != digest_of(kubeconfig)
    if is_new or not is_same(observed, labels, owners, {}):
        namespace = inputs.kueue_namespace
        body = body_of(inputs.secret_name, labels, owners, observed, inputs.hub, namespace=namespace)
        data = {KUBECONFIG_KEY: base64.b64encode(kubeconfig).decode()}
        yield Apply(SECRET, body | {"data": data}, observed)


def _deletions(objects: Iterable[tuple[Kind, WritableObject]]) -> Iterable[Phase]:
    return ((_delete(kind, obj),) for kind, obj in objects if _is_deletable(obj))


def _is_deletable(obj: WritableObject) -> bool:
    """Whether it may be deleted, and is not being deleted yet. Labels are easily copied with an object."""
    return (obj.applied_fields.applied or obj.handed_over) and not obj.meta.deleting


def _delete(kind: Kind, obj: WritableObject) -> Delete:
    return Delete(kind, obj.meta.name, obj.meta.uid, obj.meta.namespace)


def account_spec(validity: float) -> Body:
    """Return the `spec` of a ManagedServiceAccount; `validity` in seconds."""
    return {"rotation": {"enabled": True, "validity": go_duration(validity)}}


def permission_spec(inputs: ProvisioningInputs) -> Body:
    """Return the `spec` of a ClusterPermission: the rules, bound to the account of the same name."""
    subject = {"apiGroup": OCM_AUTHENTICATION, "kind": ACCOUNT.kind, "name": inputs.account_name}
    rules = [dict(rule) for rule in inputs.policy.rules]
    return {"clusterRole": {"rules": rules}, "clusterRoleBinding": {"subject": subject}}


def go_duration(seconds: float) -> str:
    """Return a duration as Go writes it (`24h0m0s`), in whole seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes}m{rest}s"
