"""
Groups, kinds, labels, reasons, limits and derived names: constants with their source.

No function here does more than put names together.
"""

from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

KUEUE: Final = "kueue.x-k8s.io"
OCM_CLUSTER: Final = "cluster.open-cluster-management.io"
INVENTORY: Final = "multicluster.x-k8s.io"
OCM_AUTHENTICATION: Final = "authentication.open-cluster-management.io"
OCM_RBAC: Final = "rbac.open-cluster-management.io"
OCM_WORK: Final = "work.open-cluster-management.io"


class Kind(NamedTuple):
    """A kind of API object; `versions` are those that we know, the newest first."""

    group: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]
    only: str = ""
    """If not "": only the objects of that name belong to it, in any namespace."""

    def at(self, version: str) -> "Resource":
        return Resource(self, version)

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind in the version that the hub serves."""

    of: Kind
    version: str
    api_version: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        api_version = f"{self.of.group}/{self.version}" if self.of.group else self.version
        object.__setattr__(self, "api_version", api_version)

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str = "") -> str:
        """The URL path: `/apis/GROUP/VERSION[/namespaces/NS]/PLURAL[/NAME[/SUBRESOURCE]]`.

        Names are quoted: whatever is in one, it stays one segment.
        """
        root = f"/apis/{self.api_version}" if self.of.group else f"/api/{self.version}"
        where = f"/namespaces/{quote(namespace, safe='')}" if namespace and self.of.namespaced else ""
        what = f"/{quote(name, safe='')}" if name else ""
        return f"{root}{where}/{self.of.plural}{what}{'/' + subresource if subresource else ''}"

    @property
    def selector(self) -> dict[str, str]:
        """The query of a LIST or WATCH of the objects that belong to the kind (`only`).

        With a right by `resourceNames`, Kubernetes allows to list and watch with just this field selector.
        """
        return {"fieldSelector": f"metadata.name={self.of.only}"} if self.of.only else {}


KUEUE_VERSIONS: Final = ("v1beta2", "v1beta1")
ADMISSION_CHECK: Final = Kind(KUEUE, "AdmissionCheck", "admissionchecks", False, KUEUE_VERSIONS)
MULTIKUEUE_CONFIG: Final = Kind(KUEUE, "MultiKueueConfig", "multikueueconfigs", False, KUEUE_VERSIONS)
MULTIKUEUE_CLUSTER: Final = Kind(KUEUE, "MultiKueueCluster", "multikueueclusters", False, KUEUE_VERSIONS)
CAPACITY_PROVIDER: Final = Kind(KUEUE, "CapacityProvider", "capacityproviders", False, ("v1alpha1",))
PLACEMENT: Final = Kind(OCM_CLUSTER, "Placement", "placements", True, ("v1beta1",))
PLACEMENT_DECISION: Final = Kind(OCM_CLUSTER, "PlacementDecision", "placementdecisions", True, ("v1beta1",))
PLACEMENT_SCORE: Final = Kind(OCM_CLUSTER, "AddOnPlacementScore", "addonplacementscores", True, ("v1alpha1",))
CLUSTER_PROFILE: Final = Kind(INVENTORY, "ClusterProfile", "clusterprofiles", True, ("v1alpha1",))
SECRET: Final = Kind("", "Secret", "secrets", True, ("v1",))
CLUSTER_QUEUE: Final = Kind(KUEUE, "ClusterQueue", "clusterqueues", False, KUEUE_VERSIONS)
LOCAL_QUEUE: Final = Kind(KUEUE, "LocalQueue", "localqueues", True, KUEUE_VERSIONS)
RESOURCE_FLAVOR: Final = Kind(KUEUE, "ResourceFlavor", "resourceflavors", False, KUEUE_VERSIONS)
TOPOLOGY: Final = Kind(KUEUE, "Topology", "topologies", False, KUEUE_VERSIONS)
COHORT: Final = Kind(KUEUE, "Cohort", "cohorts", False, KUEUE_VERSIONS)
WORKLOAD: Final = Kind(KUEUE, "Workload", "workloads", True, ("v1beta2", "v1beta1"))
EVENT: Final = Kind("", "Event", "events", True, ("v1",))
EVENTS_NAMESPACE: Final = "default"
"""Kubernetes: where events on cluster-scoped objects are."""
CONFIG_MAP: Final = Kind("", "ConfigMap", "configmaps", True, ("v1",))
DEPLOYMENT: Final = Kind("apps", "Deployment", "deployments", True, ("v1",))
NODE: Final = Kind("", "Node", "nodes", False, ("v1",))
NAMESPACE: Final = Kind("", "Namespace", "namespaces", False, ("v1",))
LIMIT_RANGE: Final = Kind("", "LimitRange", "limitranges", True, ("v1",))
RUNTIME_CLASS: Final = Kind("node.k8s.io", "RuntimeClass", "runtimeclasses", False, ("v1",))
LEASE: Final = Kind("coordination.k8s.io", "Lease", "leases", True, ("v1",))
MANAGED_CLUSTER: Final = Kind(OCM_CLUSTER, "ManagedCluster", "managedclusters", False, ("v1",))
CLAIM_ID: Final = "id.k8s.io"
"""OCM: the ClusterClaim with what tells a cluster from every other one."""
ACCOUNT: Final = Kind(
    OCM_AUTHENTICATION, "ManagedServiceAccount", "managedserviceaccounts", True, ("v1beta1", "v1alpha1")
)
PERMISSION: Final = Kind(OCM_RBAC, "ClusterPermission", "clusterpermissions", True, ("v1alpha1",))
SCORES_NAME: Final = "placement-ac"
"""The name of the AddOnPlacementScores that we report."""
CAPACITY_NAME: Final = "placement-ac-capacity"
"""The name of the ConfigMap with the capacity of the workers, for everybody who may see it."""
CAPACITY_QUEUES_NAME: Final = "placement-ac-capacity-queues"
"""The name of the ConfigMap with that of each queue on them, for admins."""
CAPACITY_KEY: Final = "capacity.json"
"""The key in both."""
CAPACITY_MANAGER: Final = "placement-ac-capacity"
"""The field manager of both."""
SETUP_NAME: Final = "placement-ac-queues"
"""The name of the ManifestWork that sets up a worker, in its cluster's namespace."""
MANIFEST_WORK: Final = Kind(OCM_WORK, "ManifestWork", "manifestworks", True, ("v1",), only=SETUP_NAME)
CLUSTER_SET: Final = Kind(OCM_CLUSTER, "ManagedClusterSet", "managedclustersets", False, ("v1beta2",))
SET_BINDING: Final = Kind(
    OCM_CLUSTER, "ManagedClusterSetBinding", "managedclustersetbindings", True, ("v1beta2",)
)
ADDON: Final = Kind(
    "addon.open-cluster-management.io", "ManagedClusterAddOn", "managedclusteraddons", True, ("v1alpha1",)
)
JOB: Final = Kind("batch", "Job", "jobs", True, ("v1",))


def token_kind(account: str) -> Kind:
    """Return the Secrets in which OCM reports the token of a ManagedServiceAccount of that name."""
    return SECRET._replace(only=account)


OUR_CONTROLLER: Final = "open-cluster-management.io/placement"
"""`AdmissionCheck.spec.controllerName` of the checks that this controller answers."""
MULTIKUEUE_CONTROLLER: Final = "kueue.x-k8s.io/multikueue"
"""`AdmissionCheck.spec.controllerName` of Kueue's own MultiKueue checks."""
PROVISIONING_CONTROLLER: Final = "kueue.x-k8s.io/provisioning-request"
"""`AdmissionCheck.spec.controllerName` of Kueue's own checks that ask an autoscaler for nodes."""
FIELD_MANAGER: Final = "placement-ac"
KUEUE_ADMISSION: Final = "kueue-admission"
"""Kueue's field manager for a Workload's admission: it can remove only what it applied."""
LABEL_ORIGIN: Final = "kueue.x-k8s.io/multikueue-origin"
"""Kueue: the label of every copy that a hub's MultiKueue puts on a worker."""
ANNOTATION_ORIGIN_UID: Final = "kueue.x-k8s.io/multikueue-origin-uid"
"""Kueue: the annotation of the copy of a LeaderWorkerSet or StatefulSet with the uid of that on the hub."""
PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""Kueue: the annotation (until 0.17: the label) of a job on a worker with the name of its Workload."""
POD_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""Kueue: the annotation (until 0.17: the label) of a Pod with its group."""
LABEL_MANAGED: Final = "kueue.x-k8s.io/managed"
"""Kueue: "true" on each Pod that it starts itself, in a group or alone."""
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Kueue: the label of a job with its LocalQueue."""
LABEL_MAX_SECONDS: Final = "kueue.x-k8s.io/max-exec-time-seconds"
"""Kueue: the label of a job with how long it may run; it becomes `spec.maximumExecutionTimeSeconds`."""
LABEL_JOB_UID: Final = "kueue.x-k8s.io/job-uid"
"""Kueue: the label of a Workload with the uid of its job."""
FINALIZER_IN_USE: Final = "kueue.x-k8s.io/resource-in-use"
"""Kueue: the finalizer of what a ClusterQueue or a Workload uses."""
TAINT_UNREACHABLE: Final = "cluster.open-cluster-management.io/unreachable"
"""OCM: the taint of a ManagedCluster whose lease has not been renewed for about 5 minutes."""

LABEL_APP_NAME: Final = "app.kubernetes.io/name"
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "placement-ac"
LABEL_PLACEMENT: Final = "cluster.open-cluster-management.io/placement"
"""OCM's own label from a PlacementDecision to its Placement; our objects carry it too."""
LABEL_CLUSTER: Final = "open-cluster-management.io/cluster-name"
"""OCM's own label from an object to its managed cluster; our MultiKueueClusters carry it."""
LABEL_MANAGER: Final = "x-k8s.io/cluster-manager"
"""ClusterProfile: who manages the cluster; only names that OCM gave are names of managed clusters."""
OCM_MANAGER: Final = "open-cluster-management"
LABEL_CLUSTER_SET: Final = "cluster.open-cluster-management.io/clusterset"
"""On a ManagedCluster: the ManagedClusterSet that it belongs to."""
LABEL_GROUP_INDEX: Final = "cluster.open-cluster-management.io/decision-group-index"
ANNOTATION_DRAINING: Final = "placement-ac.open-cluster-management.io/draining"
"""On our MultiKueueConfig: the draining clusters and since when, so that a restart forgets neither."""
ANNOTATION_SECOND_NAMES: Final = "placement-ac.open-cluster-management.io/second-names"
"""On our MultiKueueConfig: the clusters that are left out, each with the one that is the same worker."""
ANNOTATION_PLACEMENT: Final = "placement-ac.open-cluster-management.io/placement"
"""On our MultiKueueConfig: NAMESPACE/UID of the Placement in use, so that a restart chooses no other."""
ANNOTATION_PLACEMENT_NAMESPACE: Final = "placement-ac.open-cluster-management.io/placement-namespace"
"""On an AdmissionCheck of ours: the namespace of its Placement."""
ANNOTATION_UNLIST: Final = "placement-ac.open-cluster-management.io/unlist"
"""On a MultiKueueConfig: the clusters, comma-separated, that an admin does not want to stand by."""
ANNOTATION_MAINTENANCE: Final = "placement-ac.open-cluster-management.io/maintenance"
"""On a ManagedCluster: from when on no job may run there, and whether the rest is sent back then."""
ANNOTATION_DELETE_UNKNOWN: Final = "placement-ac.open-cluster-management.io/delete-unknown-copies"
"""On a ManagedCluster: "true", it is listed though Kueue deletes running jobs there that this hub does not
have."""
ANNOTATION_QUARANTINE: Final = "placement-ac.open-cluster-management.io/quarantine"
"""On a MultiKueueCluster: "true", no new job is sent there; "false", failures there quarantine it no more."""
ANNOTATION_QUOTA_MAX: Final = "placement-ac.open-cluster-management.io/quota-max"
"""On a MultiKueueCluster: RESOURCE=QUANTITY, comma-separated, the most of its quota that the hub's gets."""
ANNOTATION_ADOPT: Final = "placement-ac.open-cluster-management.io/adopt"
"""Set to "true" by the owner of an object whose name we need: hands the object over to us."""

OUR_DOMAIN: Final = "placement-ac.open-cluster-management.io/"
ANNOTATION_CLUSTER_NAMES: Final = "kueue.x-k8s.io/multikueue-cluster-names"
"""On a Workload or a Pod's template: the MultiKueueClusters or clusters that it may run on, comma-separated.
Proposed in Kueue (issue 14540), with these words."""
ANNOTATION_CLUSTER_SELECTOR: Final = "placement-ac.open-cluster-management.io/cluster-selector"
"""There: a label selector; with the prefix `claim:` a key is that of a ClusterClaim."""
ANNOTATION_ANTI_AFFINITY: Final = "placement-ac.open-cluster-management.io/anti-affinity"
"""There: a label selector over Workloads of the same queue, on whose clusters it must not run."""
ANNOTATION_PREFERRED_CLUSTERS: Final = "placement-ac.open-cluster-management.io/preferred-clusters"
"""There: weights and label selectors, as in `80:gpu=h100;20:claim:region=eu`."""
ANNOTATION_GROUP: Final = "placement-ac.open-cluster-management.io/group"
"""There: Workloads of one group run best where the last one ran."""
ANNOTATION_DATA: Final = "placement-ac.open-cluster-management.io/data"
"""There: the data sets that it reads, comma-separated."""
DATA_PREFIX: Final = "data.placement-ac.open-cluster-management.io/"
"""The key of a cluster's label or claim that says whether a data set is there: DATA_PREFIX + its name."""
ANNOTATION_DISPATCH_PROFILE: Final = "placement-ac.open-cluster-management.io/dispatch-profile"
"""On an AdmissionCheck of ours: the profile by which clusters are scored."""

ANNOTATION_TEMPLATE: Final = "placement-ac.open-cluster-management.io/worker-setup-template"
"""On an AdmissionCheck of ours: the ConfigMap in Kueue's namespace from which queues on workers are made."""
TEMPLATE_KEY: Final = "queues.yaml"
"""The key of such a ConfigMap."""
ANNOTATION_ALLOCATABLE: Final = "placement-ac.open-cluster-management.io/allocatable"
"""On our ManifestWork: what the cluster could allocate when its quota was computed, in thousandths."""
ANNOTATION_SINCE: Final = "placement-ac.open-cluster-management.io/local-queues-since"
"""On our ManifestWork: the LocalQueues that were added to it later, and when: NAMESPACE/NAME=TIME,…"""
ANNOTATION_SETTINGS: Final = "placement-ac.open-cluster-management.io/settings"
"""On the controller's Lease: the settings of the one that leads, for the commands."""
ANNOTATION_RECONCILED: Final = "placement-ac.open-cluster-management.io/reconciled"
"""On the controller's Lease: `true` once the one that leads has listed all and reconciled, for `check`."""
ANNOTATION_LED_BEFORE: Final = "placement-ac.open-cluster-management.io/led-before"
"""Of the Lease: who led before its holder."""
ANNOTATION_ACCOUNT: Final = "placement-ac.open-cluster-management.io/account"
"""On our ClusterPermission: the uid of its account. OCM looks for that only when a permission changes."""

CONSUMER: Final = "kueue-admin"
"""`ClusterProfile.status.credentials[].consumer` of the Secret that is meant for Kueue."""
KUBECONFIG_KEY: Final = "kubeconfig"
"""The key that Kueue reads in a MultiKueueCluster's Secret."""
READABLE_SOURCES: Final = ("Secret", "ClusterProfile")
"""Sources of credentials that we can read as Kueue does."""

CLUSTERS_MAX: Final = 20
"""Kueue: at most 20 clusters in a MultiKueueConfig (10 before 0.16), unless the served schema has a limit."""
SPARE_CLUSTERS: Final = 2
"""How many clusters beyond that get credentials in advance: the next in rank."""
CLUSTER_NAME_MAX: Final = 256
"""Kueue: at most this many characters in an entry of `MultiKueueConfig.spec.clusters`."""
OBJECT_NAME_MAX: Final = 253
"""Kubernetes: a DNS-1123 subdomain."""
LABEL_VALUE_MAX: Final = 63
CONDITION_MESSAGE_MAX: Final = 32768
"""Kubernetes: `maxLength` of a condition's message."""
SETTLE_SECONDS: Final = 2.0
"""How long a removal waits for OCM's decisions and the Placement's status to agree (OCM: about 0.1 s)."""
REGROUP_SECONDS: Final = 0.25
"""How long a removal waits where there are several decisions, though they agree (OCM: about 0.1 s)."""

REORDER_MARGIN: Final = 10
"""How much better a score must be, in points, for a new order alone (OCM: scores are of -100 to 100)."""
REORDER_SECONDS: Final = 60.0
"""The shortest time between two writes of the order alone: Kueue then reconciles all Workloads of a check."""
SCORE_HOLD_SECONDS: Final = 60.0
"""How long a score must differ before it is reported: OCM would decide again at each start of a job."""
SCORE_INTERVAL_SECONDS: Final = 60.0
"""The shortest time between two reports of a cluster's scores: OCM decides again after each."""
WRITES_PER_SECOND: Final = 50
"""How often objects that were written just now may be written again, after a burst of 200."""
WAITING_GRACE_MIN_SECONDS: Final = 15.0
"""The shortest grace of waiting Workloads (seen: 4 s to place a job after a change of the list)."""
UNLIST_AFTER_SECONDS: Final = 3600.0
"""How long a cluster that is no longer selected stands by, with our own dispatcher."""
QUIET_SECONDS: Final = 2.0
"""How long nothing may run or wait on a cluster before it is asked and unlisted (Kueue: 1 s late)."""
MIN_READY_SECONDS: Final = 3.0
"""How long a Workload is Ready at least before it is sent back (Kueue: 1 s to record where it was placed)."""
GATE_REOPEN_SECONDS: Final = 1.0
"""How long the gate stays closed after a cluster was unlisted, until Kueue has surely seen it."""
GATE_CLOSED_MAX_SECONDS: Final = 60.0
"""How long the gate is closed at most, after the grace of waiting Workloads; then it opens for as long."""
COPIES_FRESH_SECONDS: Final = 10.0
"""How old a cluster's report of its copies may be when the gate closes."""
COPIES_RETRY_SECONDS: Final = 15.0
"""How often a cluster is asked that could not be asked."""
RETENTION_SECONDS: Final = 3600.0
"""How long a MultiKueueCluster is kept after it was unlisted: Kueue cleans up there, once it is connected."""
STUCK_READY_SECONDS: Final = 60.0
"""A Workload that was sent back, and then is Ready for this long without a cluster, is sent back again."""
EDIT_WINDOW_SECONDS: Final = 60.0
"""How long after a change of the Placement the clusters that it no longer selects leave at once."""
WORKLOAD_WRITES_AT_ONCE: Final = 200
"""Workloads that are answered in one go; then the Placement is planned again, as it may have changed."""

NAME_CONFLICT_SECONDS: Final = 10.0
"""How often we check whether another Placement still claims a name that it has not used yet."""

CONDITION_ACTIVE: Final = "Active"
"""The one condition of an AdmissionCheck that Kueue reads."""
GENERATED: Final = "MultiKueueConfig and MultiKueueCluster generated"

ACTIVE: Final = "Active"
SOME_CLUSTERS_UNUSABLE: Final = "SomeClustersUnusable"
BAD_PARAMETERS: Final = "BadParameters"
PLACEMENT_NOT_FOUND: Final = "PlacementNotFound"
NO_DECISION: Final = "NoDecision"
NO_CLUSTER_SELECTED: Final = "NoClusterSelected"
NO_CLUSTER_USABLE: Final = "NoClusterUsable"
NAME_TAKEN: Final = "NameTaken"
APPLY_FAILED: Final = "ApplyFailed"

REASONS: Final = {
    ACTIVE: "all selected clusters are listed",
    SOME_CLUSTERS_UNUSABLE: (
        "some clusters are left out: no usable credentials, in maintenance, another one is the same worker, "
        "or beyond Kueue's limit"
    ),
    BAD_PARAMETERS: "the check's parameters are missing, name no OCM Placement, or another namespace",
    PLACEMENT_NOT_FOUND: "the Placement does not exist in the watched namespaces",
    NO_DECISION: "OCM has not decided yet",
    NO_CLUSTER_SELECTED: "OCM has selected no cluster",
    NO_CLUSTER_USABLE: (
        "clusters are selected, but none of them has usable credentials, or all are in maintenance"
    ),
    NAME_TAKEN: "a MultiKueueConfig or MultiKueueCluster of that name belongs to another owner",
    APPLY_FAILED: "the API server refused a write",
}
"""Every reason of the condition `Active`, with its description in the docs."""

CONDITION_CAPACITY: Final = "CapacitySynchronized"
"""The condition of a CapacityProvider; unless it is True, Kueue leaves the quota of its queues as it is."""
SYNCHRONIZED: Final = "Synchronized"
SOURCE_UNAVAILABLE: Final = "SourceUnavailable"
INVALID_CAPACITY: Final = "InvalidCapacity"
MISCONFIGURED: Final = "Misconfigured"

CLUSTERS_SELECTED: Final = "ClustersSelected"
CLUSTER_ADDED: Final = "ClusterAdded"
CLUSTER_DRAINING: Final = "ClusterDraining"
CLUSTER_DRAINED: Final = "ClusterDrained"
CLUSTER_REMOVED: Final = "ClusterRemoved"
CLUSTER_DISCONNECTED: Final = "ClusterDisconnected"
CLUSTER_RECONNECTED: Final = "ClusterReconnected"
CLUSTER_UNUSABLE: Final = "ClusterUnusable"
CLUSTER_QUARANTINED: Final = "ClusterQuarantined"
CLUSTER_RETURNED: Final = "ClusterReturned"
HELD: Final = "Held"
WORKLOADS_SENT_BACK: Final = "WorkloadsSentBack"
CLUSTER_LOST: Final = "ClusterLost"
EXPIRES_SOON: Final = "CredentialsExpireSoon"
CLUSTER_LACKS: Final = "ClusterLacks"
CLUSTER_MAINTENANCE: Final = "ClusterMaintenance"
LEADER_ELECTION: Final = "LeaderElection"
NO_CLUSTER_FITS: Final = "NoClusterFits"
NOMINATED: Final = "Nominated"
ANNOTATION_IGNORED: Final = "AnnotationIgnored"
WRITES_UNDONE: Final = "WritesUndone"
MANUAL_CHANGE_REVERTED: Final = "ManualChangeReverted"
WORKLOAD_SENT_BACK: Final = "SentBack"

EVENTS: Final = {
    CLUSTERS_SELECTED: ("Normal", "the first clusters are listed, or all listed clusters were leaving"),
    CLUSTER_ADDED: ("Normal", "clusters are listed, or selected again while they drain"),
    CLUSTER_DRAINING: ("Normal", "clusters begin to drain, and stay listed"),
    CLUSTER_DRAINED: ("Normal", "clusters have drained, and stand by on the list"),
    CLUSTER_REMOVED: ("Normal", "clusters are removed from the list"),
    CLUSTER_DISCONNECTED: ("Warning", "Kueue has lost its connection to listed clusters"),
    CLUSTER_RECONNECTED: ("Normal", "Kueue is connected to listed clusters again"),
    CLUSTER_UNUSABLE: ("Warning", "selected clusters cannot be used"),
    CLUSTER_QUARANTINED: ("Warning", "the dispatcher sends no new job to a cluster"),
    CLUSTER_RETURNED: ("Normal", "the dispatcher sends jobs to a cluster again"),
    HELD: ("Warning", "the list is held after a mass loss"),
    WORKLOADS_SENT_BACK: ("Warning", "jobs are sent back from a cluster that leaves"),
    WORKLOAD_SENT_BACK: ("Warning", "the job is sent back from a cluster that leaves"),
    CLUSTER_LOST: ("Warning", "a ManagedCluster was deleted while jobs ran or waited there"),
    EXPIRES_SOON: ("Warning", "the credentials of a listed cluster expire soon"),
    CLUSTER_LACKS: ("Warning", "a listed cluster lacks what the probe looks for"),
    CLUSTER_MAINTENANCE: ("Normal", "the maintenance of a cluster is announced, or has begun"),
    LEADER_ELECTION: ("Normal", "a replica became leader"),
    NOMINATED: ("Normal", "the dispatcher nominates clusters for the job"),
    NO_CLUSTER_FITS: ("Warning", "none of the Placement's clusters fits the job"),
    ANNOTATION_IGNORED: ("Warning", "an annotation of the job is misspelt or cannot be read, and is ignored"),
    MANUAL_CHANGE_REVERTED: ("Warning", "somebody has changed the spec of a generated object, or deleted it"),
    WRITES_UNDONE: ("Warning", "somebody undoes what is written again and again"),
}
"""Every reason of a Kubernetes event: its type, and the beginning of its description in the docs."""

UNUSABLE_SECONDS: Final = 3.0
"""How long the same clusters are unusable for the same reasons before an event reports it: most recover."""

RemovalPolicy = Literal["Drain", "Immediate"]
DRAIN: Final[RemovalPolicy] = "Drain"
"""The setting `removal_policy`: Workloads that run on a cluster which leaves are waited for."""
IMMEDIATE: Final[RemovalPolicy] = "Immediate"
"""The setting `removal_policy`: they are sent back and start again elsewhere."""

NO_QUOTA_THERE: Final = "no quota there for jobs of LocalQueue "
"""The beginning of a remark of the condition, behind `CLUSTER: `, about a listed worker's queues."""
SILENT: Final = (
    "it does not answer, though Kueue is connected to it: until Kueue notices (in about 51 s), "
    "it may start no job of this check"
)
"""A remark of the condition, behind `CLUSTER: `, about a listed worker that hangs."""
WAITS_FOR: Final = "waits for "
"""The message of our entry in a Workload begins so while it waits on clusters that are full."""
NOMINATED_TO: Final = "nominated to "
"""The message ends with it, and the MultiKueueClusters, when it was nominated a moment ago."""
SENT_BACK: Final = "cluster {} is leaving the Placement"
"""The message of a Workload that is sent back; Kueue quotes it in its condition Evicted, where we read it."""
SENT_AGAIN: Final = "cluster {} was left, but Kueue sends it nowhere"
"""The same, for one that Kueue sends to no cluster."""
MOVED_FROM: Final = "moved from cluster {} because"
"""The same, as versions wrote it that moved running jobs: one may have left a copy just before an upgrade."""
PENDING: Final = "Pending"
READY: Final = "Ready"
RETRY: Final = "Retry"
REJECTED: Final = "Rejected"

KUEUE_MANAGER: Final = "kueue-controller-manager"
"""Kueue: its Deployment, and its ServiceAccount (config/default in kubernetes-sigs/kueue)."""
LABEL_RELEASE: Final = "app.kubernetes.io/version"
"""Kueue's Helm chart: the release, on its Deployment."""
ADDON_CONTROLLER: Final = "kueue-addon-controller"
"""The Deployment of the Go kueue-addon (addon-contrib, charts/kueue-addon/templates/deployment.yaml)."""
ADDON_FINALIZER: Final = "kueue-addon.open-cluster-management.io/admissioncheck-cleanup"
"""Its finalizer on AdmissionChecks (addon-contrib, pkg/hub/controllers/admissioncheck/controller.go)."""
ADDON_ACCOUNT: Final = "multikueue"
"""The name of the Go kueue-addon's ManagedServiceAccount and ClusterPermission of each cluster."""
TOKEN_KEY: Final = "token"  # noqa: S105  # a key, nothing secret
AUTHORITY_KEY: Final = "ca.crt"
"""The keys of the Secret in which OCM reports a token."""
DONE: Final = ("TokenReported", "AppliedRBACManifestWork")
"""OCM: the conditions of a ManagedServiceAccount or a ClusterPermission that is in force."""
LABEL_SYNC: Final = "authentication.open-cluster-management.io/sync-to-clusterprofile"
"""OCM: "true" on a ManagedServiceAccount copies its token to the namespaces of the ClusterProfiles."""

ProvisionMode = Literal["none", "managed-serviceaccount"]
CredentialsForm = Literal["kubeconfig", "cluster-profile"]

CredentialMethod = Literal["profile-secret", "secret", "access-provider"]
"""A method to find credentials for a cluster, as the setting `credentials` names it."""
CREDENTIAL_METHODS: Final[tuple[CredentialMethod, ...]] = ("profile-secret", "secret", "access-provider")
"""Every method, in the default order."""
PER_PLACEMENT: Final = "{placement}-{cluster}"
"""The setting `cluster_names`: a MultiKueueCluster for each Placement and cluster."""
SHARED: Final = "{cluster}"
"""The setting `cluster_names`: one MultiKueueCluster per cluster serves all Placements."""
