"""
The rights that the controller's account needs on the hub, by its settings.

Those to list and watch follow from the kinds that the cache follows; the others are listed here. A test
compares them with the roles of each mode under config/.
"""

from collections.abc import Iterator
from typing import NamedTuple

from placement_ac.cache.listing import Listings
from placement_ac.cache.tables import kinds_for, namespaces_for
from placement_ac.config.policy import capacity_policy, worker_setup_policy
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADMISSION_CHECK,
    CAPACITY_NAME,
    CAPACITY_PROVIDER,
    CAPACITY_QUEUES_NAME,
    CLUSTER_PROFILE,
    CONFIG_MAP,
    DEPLOYMENT,
    EVENT,
    KUEUE_MANAGER,
    LEASE,
    MANIFEST_WORK,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PERMISSION,
    PLACEMENT_SCORE,
    SCORES_NAME,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.inputs.provisioning import ProvisioningPolicy


class RightTarget(NamedTuple):
    """The target of a verb: the resourceAttributes of a SelfSubjectAccessReview without the verb."""

    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    """"": cluster-scoped objects, or those in all namespaces."""
    name: str = ""
    """"": objects of any name."""

    def __str__(self) -> str:
        """`secrets named a in namespace b`, `workloads/status.kueue.x-k8s.io`."""
        plural = f"{self.resource}/{self.subresource}" if self.subresource else self.resource
        kind = f"{plural}.{self.group}" if self.group else plural
        named = f" named {self.name}" if self.name else ""
        return f"{kind}{named}{f' in namespace {self.namespace}' if self.namespace else ''}"


Right = tuple[RightTarget, tuple[str, ...]]
"""A target and the verbs on it."""


def needed_rights(settings: Settings, provisioning: ProvisioningPolicy) -> dict[RightTarget, tuple[str, ...]]:
    """Return the verbs that the controller needs on each target."""
    needed: dict[RightTarget, tuple[str, ...]] = {}
    for target, verbs in (*_followed(settings, provisioning), *_others(settings), *_of_options(settings)):
        needed[target] = (*needed.get(target, ()), *verbs)
    return needed


def _followed(settings: Settings, provisioning: ProvisioningPolicy) -> Iterator[Right]:
    kinds = kinds_for(
        provisioning, setup=worker_setup_policy(settings), capacity=True, reports=settings.report_scores
    )
    namespaces = namespaces_for(settings.placement_namespace, settings.kueue_namespace)
    for kind, namespace in Listings(kinds, namespaces).scopes:
        yield _on(kind, namespace, kind.only), ("list", "watch")


def _others(settings: Settings) -> Iterator[Right]:
    kueue, lease = settings.kueue_namespace, capacity_policy(settings).namespace
    yield _status(ADMISSION_CHECK), ("patch",)
    yield _on(MULTIKUEUE_CONFIG), ("create", "patch", "delete")
    yield _on(MULTIKUEUE_CLUSTER), ("create", "patch", "delete")
    yield _on(WORKLOAD), ("get",)
    yield _status(WORKLOAD), ("patch",)
    yield _status(CAPACITY_PROVIDER), ("patch",)
    yield _on(EVENT), ("create", "patch")
    yield _on(SECRET, kueue), ("get",)  # to ask a worker
    yield _on(CONFIG_MAP, kueue, KUEUE_CONFIG_MAP), ("get",)  # the origin of its copies there
    for name in (CAPACITY_NAME, CAPACITY_QUEUES_NAME):
        yield _on(CONFIG_MAP, lease, name), ("create", "patch")
    if settings.leader_elect:
        yield _on(LEASE, lease), ("create",)
        yield _on(LEASE, lease, settings.leader_elect_resource_name), ("get", "watch", "update")


def _of_options(settings: Settings) -> Iterator[Right]:
    kueue, provisions = settings.kueue_namespace, settings.credentials_provision != "none"
    if provisions or settings.credentials_probe:
        yield _on(DEPLOYMENT, kueue, KUEUE_MANAGER), ("get",)
    if provisions:
        yield _on(ACCOUNT), ("create", "patch", "delete")
        yield _on(PERMISSION), ("create", "patch", "delete")
    if provisions and settings.credentials_form == "kubeconfig":
        yield _on(SECRET, kueue), ("create", "patch", "delete")
    if settings.access_providers:
        yield _on(CLUSTER_PROFILE, kueue), ("get",)  # for the plugin, before a worker is asked
    if settings.worker_setup != "none":
        yield _on(MANIFEST_WORK), ("create",)  # a right to create cannot be limited to a name
        yield _on(MANIFEST_WORK, "", MANIFEST_WORK.only), ("patch", "delete")
    if settings.report_scores:
        yield _on(PLACEMENT_SCORE), ("create",)
        yield _on(PLACEMENT_SCORE, "", SCORES_NAME), ("patch",)
        yield _status(PLACEMENT_SCORE, SCORES_NAME), ("patch",)


def _on(kind: Kind, namespace: str = "", name: str = "") -> RightTarget:
    return RightTarget(kind.group, kind.plural, namespace=namespace, name=name)


def _status(kind: Kind, name: str = "") -> RightTarget:
    return RightTarget(kind.group, kind.plural, "status", name=name)
