"""
What Kueue's MultiKueue does on a worker cluster: the RBAC rules that its account needs there, and no more.

Pure. Read in Kueue's source, releases 0.13 to 0.19 and main of August 2026 (0.20): each adapter's verbs,
pkg/controller/admissionchecks/multikueue for Workloads. A watch is opened without a list before it, so
`list` is granted only where something is listed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from placement_ac.names import KUEUE

_JOBS: Final = "pkg/controller/jobs/"
_MULTIKUEUE: Final = "pkg/controller/admissionchecks/multikueue/"
_SENT: Final = ("create", "delete", "get", "watch")
_RESIZED: Final = ("create", "delete", "get", "patch", "watch")
"""As above, and changed in place after it was sent."""
_LISTED: Final = ("create", "delete", "get", "list", "watch")

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_VERSION: Final = re.compile(r"v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?")
_GROUP: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_ALWAYS_PLURAL: Final = ("endpoints", "securitycontextconstraints")


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """A rule of a ClusterRole."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    """Plurals, or <plural>/<subresource>."""
    verbs: tuple[str, ...]

    def as_dict(self) -> dict[str, list[str]]:
        """Return the PolicyRule of rbac.authorization.k8s.io/v1."""
        return {"apiGroups": [*self.groups], "resources": [*self.resources], "verbs": [*self.verbs]}


class Right(NamedTuple):
    """One thing that may be done: the resourceAttributes of a SelfSubjectAccessReview."""

    group: str
    resource: str
    subresource: str
    verb: str


class Kind(NamedTuple):
    """A kind that a worker must serve, in that version: Kueue knows no other."""

    framework: str
    group: str
    plural: str
    version: str


@dataclass(frozen=True, slots=True)
class Framework:
    """A job kind by Kueue's name for it. Without a plural: MultiKueue sends nothing of that kind itself."""

    group: str
    version: str
    plural: str
    verbs: tuple[str, ...]
    since: str
    """The first release of Kueue in which MultiKueue has it."""
    source: str
    """Path in kubernetes-sigs/kueue."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What it needs beside the rights on Workloads."""
        return (Rule((self.group,), (self.plural,), self.verbs),) if self.plural else ()


@dataclass(frozen=True, slots=True)
class External:
    """A kind of Kueue's multiKueue.externalFrameworks. Kueue discovers its plural; here it is guessed."""

    name: str
    group: str
    version: str
    kind: str
    plural: str

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What it needs beside the rights on Workloads."""
        return (Rule((self.group,), (self.plural,), _SENT),)


@dataclass(frozen=True, slots=True)
class Gate:
    """A feature gate of Kueue's, off by default, with which it does more on a worker."""

    rules: tuple[Rule, ...]
    since: str
    source: str


WORKLOAD_RULES: Final = (
    Rule((KUEUE,), ("workloads",), ("create", "delete", "get", "list", "update", "watch")),
    Rule((KUEUE,), ("workloads/status",), ("patch",)),
)
"""For any job. Sources: workload.go (update: finalizer, priority, scale-down; status: eviction, since 0.14)
and multikueuecluster.go (watch; list: garbage collection)."""

FRAMEWORKS: Final[Mapping[str, Framework]] = {
    "batch/job": Framework("batch", "v1", "jobs", _RESIZED, "0.8", f"{_JOBS}job"),
    "jobset.x-k8s.io/jobset": Framework(
        "jobset.x-k8s.io", "v1alpha2", "jobsets", _SENT, "0.8", f"{_JOBS}jobset"
    ),
    "kubeflow.org/mpijob": Framework("kubeflow.org", "v2beta1", "mpijobs", _SENT, "0.9", f"{_JOBS}mpijob"),
    "kubeflow.org/paddlejob": Framework(
        "kubeflow.org", "v1", "paddlejobs", _SENT, "0.9", f"{_JOBS}kubeflow/jobs/paddlejob"
    ),
    "kubeflow.org/pytorchjob": Framework(
        "kubeflow.org", "v1", "pytorchjobs", _SENT, "0.9", f"{_JOBS}kubeflow/jobs/pytorchjob"
    ),
    "kubeflow.org/tfjob": Framework(
        "kubeflow.org", "v1", "tfjobs", _SENT, "0.9", f"{_JOBS}kubeflow/jobs/tfjob"
    ),
    "kubeflow.org/xgboostjob": Framework(
        "kubeflow.org", "v1", "xgboostjobs", _SENT, "0.9", f"{_JOBS}kubeflow/jobs/xgboostjob"
    ),
    "kubeflow.org/jaxjob": Framework(
        "kubeflow.org", "v1", "jaxjobs", _SENT, "0.12", f"{_JOBS}kubeflow/jobs/jaxjob"
    ),
    "trainer.kubeflow.org/trainjob": Framework(
        "trainer.kubeflow.org", "v1alpha1", "trainjobs", _SENT, "0.14", f"{_JOBS}trainjob"
    ),
    "ray.io/rayjob": Framework("ray.io", "v1", "rayjobs", _SENT, "0.11", f"{_JOBS}rayjob"),
    "ray.io/raycluster": Framework("ray.io", "v1", "rayclusters", _RESIZED, "0.11", f"{_JOBS}raycluster"),
    "ray.io/rayservice": Framework("ray.io", "v1", "rayservices", _RESIZED, "0.17", f"{_JOBS}rayservice"),
    "workload.codeflare.dev/appwrapper": Framework(
        "workload.codeflare.dev", "v1beta2", "appwrappers", _SENT, "0.11", f"{_JOBS}appwrapper"
    ),
    "pod": Framework("", "v1", "pods", _LISTED, "0.11", f"{_JOBS}pod"),
    "statefulset": Framework("apps", "v1", "statefulsets", _SENT, "0.16", f"{_JOBS}statefulset"),
    "leaderworkerset.x-k8s.io/leaderworkerset": Framework(
        "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", _SENT, "0.17", f"{_JOBS}leaderworkerset"
    ),
    "deployment": Framework("apps", "v1", "", (), "0.11", f"{_JOBS}deployment"),
    "sparkoperator.k8s.io/sparkapplication": Framework(
        "sparkoperator.k8s.io", "v1beta2", "", (), "none", f"{_JOBS}sparkapplication"
    ),
}

DEFAULT_FRAMEWORKS: Final = (
    "batch/job",
    "kubeflow.org/mpijob",
    "ray.io/rayjob",
    "ray.io/raycluster",
    "ray.io/rayservice",
    "jobset.x-k8s.io/jobset",
    "workload.codeflare.dev/appwrapper",
    "trainer.kubeflow.org/trainjob",
    "pod",
    "statefulset",
    "leaderworkerset.x-k8s.io/leaderworkerset",
)
"""Those of Kueue's shipped configuration that MultiKueue sends, as of 0.19; 0.18 and before have the training
operator's kinds as well. Source: config/components/manager/controller_manager_config.yaml."""

GATES: Final[Mapping[str, Gate]] = {
    "MultiKueueOrchestratedPreemption": Gate(
        (Rule((KUEUE,), ("workloads/status",), ("update",)),), "0.17", f"{_MULTIKUEUE}workload.go"
    ),
    "MultiKueueManagerQuotaAutomation": Gate(
        (Rule((KUEUE,), ("clusterqueues", "localqueues"), ("list", "watch")),),
        "0.18",
        f"{_MULTIKUEUE}remote_client.go",
    ),
}


def external(text: str) -> External | str:
    """Return the kind that a name of Kueue's multiKueue.externalFrameworks means, or what is wrong with it.

    Kueue: Kind.version.group, split at the first two dots (ParseKindArg). The plural is guessed as
    Kubernetes guesses (UnsafeGuessKindToResource). Wildcards and core kinds are refused.
    """
    kind, _, rest = text.partition(".")
    version, _, group = rest.partition(".")
    if not (_KIND.fullmatch(kind) and _VERSION.fullmatch(version) and _GROUP.fullmatch(group)):
        return f"{text!r} is no Kind.version.group, like PipelineRun.v1.tekton.dev"
    return External(text, group, version, kind, _plural(kind.lower()))


def rules(
    frameworks: Iterable[str], externals: Iterable[External] = (), gates: Iterable[str] = ()
) -> tuple[Rule, ...]:
    """Return the rules that MultiKueue needs on a worker, merged and sorted: the same for any order.

    `frameworks` are keys of FRAMEWORKS, `gates` those of GATES that are on. Raises KeyError for others.
    """
    verbs: dict[tuple[str, str], set[str]] = {}
    for rule in _rules(frameworks, externals, gates):
        for group in rule.groups:
            for resource in rule.resources:
                verbs.setdefault((group, resource), set()).update(rule.verbs)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in sorted(verbs.items()):
        merged.setdefault((group, tuple(sorted(allowed))), []).append(resource)
    return tuple(sorted(Rule((group,), tuple(names), which) for (group, which), names in merged.items()))


def needed(
    frameworks: Iterable[str], externals: Iterable[External] = (), gates: Iterable[str] = ()
) -> tuple[Right, ...]:
    """Return the same one by one, sorted, for SelfSubjectAccessReviews."""
    return tuple(
        sorted(
            Right(group, *_split(resource), verb)
            for rule in rules(frameworks, externals, gates)
            for group in rule.groups
            for resource in rule.resources
            for verb in rule.verbs
        )
    )


def kinds(frameworks: Iterable[str], externals: Iterable[External] = ()) -> tuple[Kind, ...]:
    """Return the kinds without any one of which Kueue does not connect to a worker; Workloads aside."""
    known = ((name, FRAMEWORKS[name]) for name in frameworks)
    named = [Kind(name, one.group, one.plural, one.version) for name, one in known if one.plural]
    return (*named, *(Kind(one.name, one.group, one.plural, one.version) for one in externals))


def _rules(frameworks: Iterable[str], externals: Iterable[External], gates: Iterable[str]) -> Iterable[Rule]:
    yield from WORKLOAD_RULES
    sources: tuple[Any, ...] = (
        *(FRAMEWORKS[name] for name in frameworks),
        *externals,
        *(GATES[name] for name in gates),
    )
    for source in sources:
        yield from source.rules


def _split(resource: str) -> tuple[str, str]:
    plural, _, subresource = resource.partition("/")
    return plural, subresource


def _plural(singular: str) -> str:
    if singular.endswith(_ALWAYS_PLURAL):
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular.removesuffix('y')}ies"
    return f"{singular}s"
