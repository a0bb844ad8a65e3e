"""
Every setting with its default and its validation. No I/O: `load` reads the values.
"""

import ast
import inspect
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from placement_ac.core.api.constants import (
    CREDENTIAL_METHODS,
    DRAIN,
    PER_PLACEMENT,
    WAITING_GRACE_MIN_SECONDS,
    CredentialMethod,
    CredentialsForm,
    ProvisionMode,
    RemovalPolicy,
)
from placement_ac.core.api.durations import DURATION_FORM, UNITS, parse_seconds
from placement_ac.core.api.kueue_gates import parse_gate
from placement_ac.core.api.label_selector import CLAIM
from placement_ac.core.dispatch.profiles import RANKED, parse_profile
from placement_ac.core.inputs.rights import FRAMEWORKS, parse_external, parse_release

_NAMESPACE: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_OBJECT_NAME: Final = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"
_PORT: Final = r"([0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
_ADDRESS: Final = rf"^(.*:{_PORT})?$"

_NOT_TEXT: Final = re.compile("[\\0\\ud800-\\udfff]")

_KEY: Final = r"[A-Za-z0-9]([-A-Za-z0-9_./]*[A-Za-z0-9])?"
_TAINT_KEY: Final = re.compile(rf"{_KEY}\*?|{_KEY}[-_./]\*|\*")
_COST_LABEL: Final = re.compile(rf"({CLAIM})?{_KEY}")
_NODE_LABEL: Final = re.compile(rf"{_KEY}=({CLAIM})?{_KEY}")
ITEM_PATTERNS: Final = {"job_taints": _TAINT_KEY, "cost_labels": _COST_LABEL, "node_labels": _NODE_LABEL}
"""The format of each value of some lists."""

_LABEL: Final = "it has lower-case letters, digits and '-', at most 63"
_NAMESPACE_LABEL: Final = _LABEL.replace("it", "a namespace", 1)
PATTERN_HELP: Final = {
    "placement-namespace": _NAMESPACE_LABEL,
    "kueue-namespace": _NAMESPACE_LABEL,
    "credentials-account": _LABEL,
    "worker-setup-template": "it has lower-case letters, digits, '-' and '.', at most 253",
    "leader-elect-resource-name": "it has lower-case letters, digits, '-' and '.', at most 253",
    "leader-elect-resource-namespace": _NAMESPACE_LABEL,
    "cluster-proxy": "it is the URL of a server, https://…",
    "metrics-bind-address": "it is HOST:PORT or :PORT, with a port up to 65535",
    "health-probe-bind-address": "it is HOST:PORT or :PORT, with a port up to 65535",
}
"""The format of each setting that has a pattern."""

_NEEDS_DISPATCHER: Final = "set --dispatcher true, or dispatch.enabled in the file: "

T = TypeVar("T")


def _seconds(value: object) -> object:
    """Read a duration as Go writes it (`90s`, `1m30s`, `5m`); a bare number is of seconds."""
    if not isinstance(value, str):
        return value
    if (seconds := parse_seconds(value)) is None:
        raise PydanticCustomError("duration", DURATION_FORM)
    return seconds


def _share(value: object) -> object:
    """Read a share in percent; a bare number is one of 1."""
    if not isinstance(value, str) or not value.endswith("%"):
        return value
    try:
        return float(value.removesuffix("%").encode("ascii")) / 100
    except ValueError:
        raise PydanticCustomError("share", "a share is like 10% or 0.1") from None


def _capitalized(value: object) -> object:
    """Take `immediate` for Immediate."""
    return value.capitalize() if isinstance(value, str) else value


def _split(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",")) if value else ()


def _is_text(value: T) -> T:
    """Return a name or a path. Raises ValueError for one that could neither be used nor printed."""
    if _NOT_TEXT.search(str(value)):
        raise ValueError("it has a NUL, or bytes that are not UTF-8")
    return value


Text = Annotated[str, AfterValidator(_is_text)]
File = Annotated[Path, AfterValidator(_is_text)]
Namespace = Annotated[str, Field(pattern=_NAMESPACE)]
Address = Annotated[str, Field(pattern=_ADDRESS)]
_IS_DURATION: Final = BeforeValidator(_seconds)
Seconds = Annotated[float, _IS_DURATION, Field(ge=0, allow_inf_nan=False)]
"""A duration. Unit: seconds."""
_IS_SHARE: Final = BeforeValidator(_share)
Share = Annotated[float, _IS_SHARE, Field(ge=0, lt=1, allow_inf_nan=False)]
"""A share, written like 10% or 0.1."""
CommaSeparated = Annotated[tuple[T, ...], BeforeValidator(_split)]


class Settings(BaseModel):
    """The settings of the controller. The docstring of a setting is its help on the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    config: File | None = None
    """A file with settings (YAML or JSON), read once, at the start."""
    kubeconfig: File | None = None
    """The kubeconfig; without it $KUBECONFIG, ~/.kube/config or the Pod's account."""
    context: Text | None = None
    """The context in the kubeconfig."""
    placement_namespace: CommaSeparated[Namespace] = Field(("kueue-system",), min_length=1)
    """The namespaces of Placements, comma-separated: a check uses the first one that has a Placement of
    its name."""
    kueue_namespace: Namespace = "kueue-system"
    """The namespace of Kueue, with its Secrets and ClusterProfiles."""
    cluster_names: Literal["{placement}-{cluster}", "{cluster}"] = PER_PLACEMENT
    """Names of MultiKueueClusters; with {cluster} all Placements share them."""
    credentials: CommaSeparated[CredentialMethod] = Field(CREDENTIAL_METHODS, min_length=1)
    """Where to look for credentials, in this order, comma-separated."""
    removal_policy: Annotated[RemovalPolicy, BeforeValidator(_capitalized)] = DRAIN
    """Whether running jobs on a cluster that leaves are waited for, or sent back."""
    drain_deadline: Seconds | None = None
    """How long to wait for such jobs before they are sent back.  [default: for ever]"""
    waiting_grace: Seconds = 60.0
    """How long jobs that only wait on such a cluster may still be placed there, at least 15s."""
    settle: Seconds = 30.0
    """While decisions change more often than this, no cluster is removed; 0: removals do not wait."""
    mass_loss_grace: Seconds = 300.0
    """How long the list is held then; 0: not at all."""
    retry_waiting_after: Seconds | None = None
    """Send a job back after this time with quota but no usable cluster.  [default: never]"""
    dispatcher: bool = False
    """Nominate the clusters for each job; Kueue's dispatcherName must name this controller."""
    unlist_after: Seconds | None = None
    """How long a cluster that is no longer selected stays listed without jobs (only with the dispatcher).
    [default: 1h with the dispatcher, otherwise 0]"""
    step_size: int = Field(3, ge=1, le=20)
    """How many clusters the dispatcher nominates at once where it is not known which one has room."""
    dispatch_profile: Text = RANKED
    """How the dispatcher scores clusters: ranked, spread, pack, headroom, or weights, as Placement=1."""
    node_labels: CommaSeparated[str] = ()
    """Labels of nodes and where clusters have their values, comma-separated: KEY=LABEL or KEY=claim:NAME.
    Jobs go only to clusters that can have the nodes they require."""
    look_for: CommaSeparated[Literal["jobs", "integrations"]] = ()
    """Look for these on workers beside queues, comma-separated: jobs (names that are taken), integrations
    (those of Kueue there). Made credentials get the rights for it."""
    job_taints: CommaSeparated[str] = ()
    """Keys of taints of clusters that jobs must tolerate in their Pod templates, comma-separated; one that
    ends in * is the beginning of keys. OCM's own selection is not changed."""
    cost_labels: CommaSeparated[str] = Field((), max_length=2)
    """The label of clusters that has their price, or claim:NAME, for the score Cost; a second one has the
    price for jobs that ask for GPUs."""
    avoid_after_failure: Seconds = 0.0
    """How long a job avoids a cluster where it failed, such as 10m; where jobs keep failing, no new one is
    sent. Only with the dispatcher; 0: failures are not remembered."""
    access_providers: File | None = None
    """The access providers of ClusterProfiles, as in Kueue's configuration (JSON or YAML)."""
    credentials_provision: ProvisionMode = "none"
    """Let OCM issue credentials for selected clusters that have none, or not."""
    credentials_account: Namespace = "placement-ac"
    """The name of the ManagedServiceAccounts and ClusterPermissions that are created."""
    credentials_form: CredentialsForm = "kubeconfig"
    """Where to put a token: into a kubeconfig Secret, or (by OCM) into the ClusterProfile's namespace."""
    credentials_validity: Seconds = Field(86400.0, ge=600)
    """The lifetime of a token; OCM renews it when a fifth is left."""
    credentials_probe: bool = False
    """Probe a cluster before it is listed."""
    cluster_proxy: str = Field("", pattern=r"^(https://[^/?#@\s]+(/[^?#@\s]*)?)?$")
    """The URL of OCM's cluster-proxy, for kubeconfigs that do not use the workers' own URLs."""
    cluster_proxy_ca: File | None = None
    """The CA of the proxy's certificate (PEM).  [default: the CA of each worker]"""
    worker_setup: Literal["none", "manifestwork"] = "none"
    """Let OCM put namespaces, queues and quota onto selected clusters, or not."""
    worker_setup_template: str = Field("", pattern=rf"^$|{_OBJECT_NAME}")
    """The ConfigMap in Kueue's namespace from which queues on workers are made.  [default: from the hub's
    queues]"""
    quota_reserve: Share = 0.1
    """The share of a cluster's CPU, memory and ephemeral storage that is no quota there, like 10%."""
    report_scores: bool = False
    """Report scores of the clusters for Placements: AddOnPlacementScores named placement-ac."""
    score_gpus: CommaSeparated[str] = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/xe", "habana.ai/gaudi")
    """The resources that count as GPUs for scores, comma-separated."""
    score_nodes: bool = False
    """Read the nodes of workers as well, and report the share of their GPUs that can be used."""
    kueue_version: str = ""
    """The release of the hub's Kueue, like 0.19.1.  [default: from Kueue's Deployment]"""
    kueue_feature_gates: CommaSeparated[str] = ()
    """Feature gates of the hub's Kueue, as Name=true or Name=false, comma-separated.  [default: from Kueue's
    Deployment and its ConfigMap kueue-manager-config]"""
    frameworks: CommaSeparated[str] = ()
    """The job kinds in Kueue's integrations.frameworks, comma-separated.  [default: those that this Kueue
    release enables]"""
    external_frameworks: CommaSeparated[str] = ()
    """Kueue's multiKueue.externalFrameworks, as Kind.version.group, comma-separated."""
    metrics_bind_address: Address = ""
    """Where /metrics is served, as HOST:PORT or :PORT.  [default: nowhere]"""
    health_probe_bind_address: Address = ""
    """Where /healthz and /readyz are served, as HOST:PORT or :PORT.  [default: nowhere]"""
    leader_elect: bool = True
    """Write only while holding a Lease, so that there can be several replicas."""
    leader_elect_lease_duration: Seconds = Field(15.0, ge=1)
    """How long the others wait before they replace a leader that does not renew the Lease; it stops writing
    after two thirds of that."""
    leader_elect_resource_name: str = Field("placement-ac", pattern=_OBJECT_NAME)
    """The name of the Lease."""
    leader_elect_resource_namespace: str = Field("", pattern=rf"^$|{_NAMESPACE}")
    """The namespace of the Lease.  [default: Kueue's namespace]"""
    log_format: Literal["text", "json"] = "text"
    """Log lines for people or programs."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The lowest level that is logged."""

    @field_validator("kueue_version")
    @classmethod
    def _release(cls, version: str) -> str:
        if version and not parse_release(version):
            raise ValueError("a release is like 0.19.1 or v0.18.6")
        return version

    @field_validator("kueue_feature_gates")
    @classmethod
    def _gates(cls, gates: tuple[str, ...]) -> tuple[str, ...]:
        if bad := [gate for gate in gates if not parse_gate(gate)]:
            raise ValueError(f"write {bad[0]!r} as Name=true or Name=false")
        return gates

    @field_validator("waiting_grace")
    @classmethod
    def _long_enough(cls, seconds: float) -> float:
        if seconds < WAITING_GRACE_MIN_SECONDS:
            raise ValueError(
                f"set at least {WAITING_GRACE_MIN_SECONDS:g}s: Kueue may need seconds to place a job, "
                "and with a shorter time jobs are sent back again and again before it has placed them"
            )
        return seconds

    @field_validator("unlist_after")
    @classmethod
    def _only_with_dispatcher(cls, seconds: float | None, info: ValidationInfo) -> float | None:
        if seconds and not info.data.get("dispatcher"):
            raise ValueError(_NEEDS_DISPATCHER + "otherwise Kueue sends jobs to every listed cluster")
        return seconds

    @field_validator("avoid_after_failure")
    @classmethod
    def _by_dispatcher(cls, seconds: float, info: ValidationInfo) -> float:
        if seconds and not info.data.get("dispatcher"):
            raise ValueError(_NEEDS_DISPATCHER + "otherwise Kueue chooses where jobs go")
        return seconds

    @field_validator("dispatch_profile")
    @classmethod
    def _profile(cls, text: str) -> str:
        parse_profile(text)
        return text

    @field_validator("job_taints", "cost_labels")
    @classmethod
    def _label_keys(cls, keys: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        taints = info.field_name == "job_taints"
        pattern, form = (_TAINT_KEY, "KEY or KEY*") if taints else (_COST_LABEL, "KEY or claim:NAME")
        if bad := [key for key in keys if not pattern.fullmatch(key)]:
            raise ValueError(f"write {bad[0]!r} as {form}")
        return keys

    @field_validator("node_labels")
    @classmethod
    def _mapped(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        for label in labels:
            if not _NODE_LABEL.fullmatch(label):
                raise ValueError(f"{label!r} is not NODE-LABEL=CLUSTER-LABEL or NODE-LABEL=claim:CLAIM")
        return labels

    @field_validator("frameworks")
    @classmethod
    def _known(cls, frameworks: tuple[str, ...]) -> tuple[str, ...]:
        for name in frameworks:
            if name not in FRAMEWORKS:
                raise ValueError(f"MultiKueue has no job kind {name!r}; known are {', '.join(FRAMEWORKS)}")
        return frameworks

    @field_validator("external_frameworks")
    @classmethod
    def _named(cls, frameworks: tuple[str, ...]) -> tuple[str, ...]:
        for name in frameworks:
            if isinstance(problem := parse_external(name), str):
                raise ValueError(problem)  # noqa: TRY004  # pydantic wants this one
        return frameworks

    @field_validator("credentials", "placement_namespace")
    @classmethod
    def _each_once(cls, named: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(named)) != len(named):
            raise ValueError("name each only once")
        return named


@cache
def descriptions() -> dict[str, str]:
    """Return the docstring of each setting. They are read from the source: only a help needs them."""
    (settings,) = ast.parse(inspect.getsource(Settings)).body
    found: dict[str, str] = {}
    for setting, text in pairwise(settings.body if isinstance(settings, ast.ClassDef) else ()):
        match setting, text:
            case (
                ast.AnnAssign(target=ast.Name(name)),
                ast.Expr(ast.Constant(str(docstring))),
            ):
                found[name] = inspect.cleandoc(docstring)
    return found


def is_duration(name: str) -> bool:
    """Whether a setting is a duration, which may be written like 90s or 1h30m."""
    return _is_read_by(_IS_DURATION, name)


def is_share(name: str) -> bool:
    """Whether a setting is a share, which may be written like 10%."""
    return _is_read_by(_IS_SHARE, name)


def _is_read_by(reader: BeforeValidator, name: str) -> bool:
    field = Settings.model_fields[name]
    kinds = (field.metadata, *(getattr(kind, "__metadata__", ()) for kind in get_args(field.annotation)))
    return any(reader in kind for kind in kinds)


def is_list(name: str) -> bool:
    """Whether a setting has any number of values."""
    return get_origin(Settings.model_fields[name].annotation) is tuple


def setting_text(name: str, value: object) -> str | bool | int | float | list[str] | None:
    """Return a value of the setting `name` as one writes it in a file; None for none."""
    if isinstance(value, tuple):
        return list(value)
    if is_duration(name) and isinstance(value, float):
        unit = next((unit for unit in ("h", "m") if value > UNITS["m"] and not value % UNITS[unit]), "s")
        return f"{value / UNITS[unit]:f}".rstrip("0").rstrip(".") + unit
    if is_share(name) and isinstance(value, float):
        return f"{value * 100:.10g}%"
    return value if isinstance(value, bool | int | float | None) else str(value)


def setting_as_flag(name: str, value: object) -> str:
    """Return a value of the setting `name` as one writes it for a flag; "" for none."""
    text = setting_text(name, value)
    if isinstance(text, list):
        return ",".join(text)
    if isinstance(text, bool):
        return str(text).lower()
    return "" if text is None else str(text)


def default_of(name: str) -> str:
    """Return the default of a setting as one writes it for a flag; "" when it has none."""
    return setting_as_flag(name, Settings.model_fields[name].default)
