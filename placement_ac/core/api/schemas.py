"""
The shapes of API objects in JSON: pydantic models with the fields that are used.

No I/O, no clock.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AwareDatetime, BeforeValidator, Field

from placement_ac.core.api.quantities import milli
from placement_ac.core.api.shapes import ApiModel, ListOf, SlottedModel


class Condition(ApiModel):
    """An entry of `status.conditions`."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: str = ""


class Parameters(ApiModel):
    """`AdmissionCheck.spec.parameters`."""

    api_group: str = ""
    kind: str = ""
    name: str = ""


class CheckSpec(ApiModel):
    """`AdmissionCheck.spec`."""

    controller_name: str = ""
    parameters: Parameters | None = None


class NamedFlavor(ApiModel):
    """An entry of `CapacityProvider.spec.orchestratedFlavors`."""

    name: str = ""


class CapacityProviderSpec(CheckSpec):
    """`CapacityProvider.spec`."""

    orchestrated_flavors: ListOf[NamedFlavor] = ()


class Conditions(ApiModel):
    """A `status` with conditions."""

    conditions: ListOf[Condition] = ()


@dataclass(frozen=True, slots=True)
class DecisionGroup(SlottedModel):
    """An entry of `Placement.status.decisionGroups`."""

    decisions: ListOf[str] = ()
    cluster_count: int = 0


class PlacementStatus(Conditions):
    """`Placement.status`."""

    number_of_selected_clusters: int | None = None
    decision_groups: ListOf[DecisionGroup] = ()


class AddOn(ApiModel):
    """`scoreCoordinate.addOn` of a prioritizer."""

    resource_name: str = ""
    score_name: str = ""


class ScoreCoordinate(ApiModel):
    """`scoreCoordinate` of a prioritizer."""

    add_on: AddOn | None = None


class PrioritizerConfig(ApiModel):
    """An entry of `prioritizerPolicy.configurations`; OCM: weight 1 by default."""

    score_coordinate: ScoreCoordinate | None = None
    weight: int = 1


class PrioritizerPolicy(ApiModel):
    """`Placement.spec.prioritizerPolicy`."""

    configurations: ListOf[PrioritizerConfig] = ()


class PlacementSpec(ApiModel):
    """`Placement.spec`."""

    prioritizer_policy: PrioritizerPolicy | None = None
    decision_strategy: dict[str, Any] | None = None
    cluster_sets: ListOf[str] = ()


class AccessRef(ApiModel):
    """`accessRef` of a ClusterProfile's credential."""

    kind: str = ""
    name: str = ""
    namespace: str = ""


class ProfileCredential(ApiModel):
    """An entry of `ClusterProfile.status.credentials` (the first generation)."""

    consumer: str = ""
    access_ref: AccessRef = AccessRef()


class AccessProvider(ApiModel):
    """An entry of `accessProviders`, or of `credentialProviders` (deprecated)."""

    name: str = ""
    cluster: dict[str, Any] = Field(default_factory=dict)


class ProfileStatus(ApiModel):
    """`ClusterProfile.status`, all three generations of credentials."""

    credentials: ListOf[ProfileCredential] = ()
    access_providers: ListOf[AccessProvider] = ()
    credential_providers: ListOf[AccessProvider] = ()


class AdmissionCheckStateModel(ApiModel):
    """An entry of `Workload.status.admissionChecks`."""

    name: str
    state: str = "Pending"
    message: str = ""
    last_transition_time: str = ""


class WorkloadStatus(Conditions):
    """`Workload.status`."""

    admission_checks: ListOf[AdmissionCheckStateModel] = ()
    cluster_name: str | None = None
    nominated_cluster_names: ListOf[str] = ()


class Taint(ApiModel):
    """An entry of `ManagedCluster.spec.taints`."""

    key: str = ""
    value: str = ""
    effect: str = ""


class ManagedClusterClientConfig(ApiModel):
    """An entry of `ManagedCluster.spec.managedClusterClientConfigs`; `ca_bundle` is PEM in base64."""

    url: str = ""
    ca_bundle: str | None = None


class ManagedClusterSpec(ApiModel):
    """`ManagedCluster.spec`."""

    taints: ListOf[Taint] = ()
    managed_cluster_client_configs: ListOf[ManagedClusterClientConfig] = ()


class ScoreEntry(ApiModel):
    """An entry of `AddOnPlacementScore.status.scores`."""

    name: str
    value: int = 0


class ScoreStatus(ApiModel):
    """`AddOnPlacementScore.status`."""

    scores: ListOf[ScoreEntry] = ()
    valid_until: AwareDatetime | None = None


def _amount(value: object) -> int:
    amount = milli(value)
    if amount is None or amount < 0:
        raise ValueError("it must be a quantity of 0 or more")
    return amount


Amount = Annotated[int, BeforeValidator(_amount)]
"""A quantity on the wire; in thousandths, not negative."""
Count = Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)]
"""Kueue's counters are int32."""


class ResourceAmounts(ApiModel):
    """The amount of a resource in a flavor that a ClusterQueue has, or has given."""

    name: str = ""
    nominal_quota: Amount = 0
    borrowing_limit: Amount | None = None
    total: Amount = 0


class FlavorAmounts(ApiModel):
    """An entry of `resourceGroups[].flavors`, or of `flavorsReservation`."""

    name: str = ""
    resources: ListOf[ResourceAmounts] = ()


class ResourceGroup(ApiModel):
    """An entry of `resourceGroups` in the spec or the effective quotas of a ClusterQueue."""

    flavors: ListOf[FlavorAmounts] = ()


class ClusterQueueSpec(ApiModel):
    """`ClusterQueue.spec`; the cohort has one name in v1beta1, and another in v1beta2."""

    cohort: str | None = None
    cohort_name: str | None = None
    stop_policy: str | None = None
    namespace_selector: Any = None
    """Kueue: without one, no namespace is selected; an empty one selects all."""
    resource_groups: ListOf[ResourceGroup] = ()


class EffectiveQuotas(ApiModel):
    """`ClusterQueue.status.effectiveQuotas` (Kueue's Dynamic Quota Orchestration)."""

    resource_groups: ListOf[ResourceGroup] = ()


class ClusterQueueStatus(Conditions):
    """`ClusterQueue.status`."""

    effective_quotas: EffectiveQuotas | None = None
    """They replace the quotas in the spec, also if there are none of them."""
    flavors_reservation: ListOf[FlavorAmounts] = ()
    pending_workloads: Count = 0
    reserving_workloads: Count = 0


class LocalQueueSpec(ApiModel):
    """`LocalQueue.spec`."""

    cluster_queue: str = ""
    stop_policy: str | None = None
