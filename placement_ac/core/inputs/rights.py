"""
The RBAC rules that Kueue's MultiKueue needs on a worker cluster, and no more.

Pure. Read in Kueue's source, every release from 0.11.0 to 0.19.2 and main of August 2026 (0.20): each
adapter's verbs, pkg/controller/admissionchecks/multikueue for Workloads, pkg/features for gates. A watch is
opened without a list before it, so `list` is granted only where something is listed.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from placement_ac.core.api.constants import KUEUE

_JOBS: Final = "pkg/controller/jobs/"
_MULTIKUEUE: Final = "pkg/controller/admissionchecks/multikueue/"
_VERBS_TO_SEND: Final = ("create", "delete", "get", "watch")
_ELASTIC: Final = "ElasticJobsViaWorkloadSlices"
_SPEC_SYNC: Final = "MultiKueueRemoteSpecSync"

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_VERSION: Final = re.compile(r"v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?")
_GROUP: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_RELEASE: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})([-+][0-9A-Za-z.+-]{1,40})?")
_ALWAYS_PLURAL: Final = ("endpoints", "securitycontextconstraints")


class KueueRelease(NamedTuple):
    """A release of Kueue."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


ASSUMED: Final = KueueRelease(0, 19, 0)
"""The release that is assumed where the hub's is not known."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of releases. "0.18.5, 0.19.1": 0.18 from patch 5 on, 0.19 from patch 1 on, and later ones."""

    since: str
    """"": none."""
    until: str = ""
    """The first that no longer belong to it, written alike."""

    def has(self, release: KueueRelease | None) -> bool:
        """Whether the range has the release; None, which means any: whether it has one at all."""
        if release is None:
            return bool(self.since)
        return _reached(self.since, release) and not _reached(self.until, release)

    def __str__(self) -> str:
        ended = f"; no more since {self.until}" if self.until else ""
        return f"{self.since}{ended}" if self.since else "never"


@dataclass(frozen=True, slots=True, order=True)
class PolicyRule:
    """A rule of a ClusterRole."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]
    """Plurals, or <plural>/<subresource>."""
    verbs: tuple[str, ...]

    def as_dict(self) -> dict[str, list[str]]:
        """Return the PolicyRule of rbac.authorization.k8s.io/v1."""
        return {"apiGroups": [*self.groups], "resources": [*self.resources], "verbs": [*self.verbs]}


class Right(NamedTuple):
    """One verb on one resource: the resourceAttributes of a SelfSubjectAccessReview."""

    group: str
    resource: str
    subresource: str
    verb: str


class JobKind(NamedTuple):
    """A kind that a worker must serve in that version: Kueue uses no other."""

    framework: str
    group: str
    plural: str
    version: str


class ExtraVerbs(NamedTuple):
    """Verbs that a job kind needs besides those by which it is sent."""

    verbs: tuple[str, ...]
    since: VersionRange
    gate: str = ""
    """One of GATES, if it is needed only with that."""


@dataclass(frozen=True, slots=True)
class Framework:
    """A job kind by Kueue's name for it. Without a plural: MultiKueue sends nothing of that kind itself."""

    group: str
    version: str
    plural: str
    since: VersionRange
    """The releases in which MultiKueue has it."""
    shipped: VersionRange
    """Those whose shipped configuration enables it."""
    source: str
    """Path in kubernetes-sigs/kueue."""
    extra_verbs: tuple[ExtraVerbs, ...] = ()

    def is_sent(self, release: KueueRelease | None) -> bool:
        """Whether MultiKueue sends, and so watches, objects of that kind."""
        return bool(self.plural) and self.since.has(release)

    def rules(self, release: KueueRelease | None, gates: Collection[str]) -> Iterator[PolicyRule]:
        """Yield the rules that it needs besides the rights on Workloads, with these gates on."""
        if self.is_sent(release):
            yield self.rule(_VERBS_TO_SEND)
            for more in self.extra_verbs:
                if more.since.has(release) and (not more.gate or more.gate in gates):
                    yield self.rule(more.verbs)

    def rule(self, verbs: tuple[str, ...]) -> PolicyRule:
        """Return the rule that allows `verbs`."""
        return PolicyRule((self.group,), (self.plural,), verbs)


@dataclass(frozen=True, slots=True)
class ExternalFramework:
    """A kind of Kueue's multiKueue.externalFrameworks. Kueue discovers its plural; here it is guessed."""

    name: str
    group: str
    version: str
    kind: str
    plural: str

    @property
    def rule(self) -> PolicyRule:
        """The rule that it needs besides the rights on Workloads."""
        return PolicyRule((self.group,), (self.plural,), _VERBS_TO_SEND)


@dataclass(frozen=True, slots=True)
class RightsRequirement:
    """Rights that MultiKueue needs on a worker whatever the job kinds are."""

    resources: tuple[str, ...]
    """Of Kueue's group."""
    verbs: tuple[str, ...]
    since: VersionRange
    source: str

    @property
    def rule(self) -> PolicyRule:
        """The rule that it needs."""
        return PolicyRule((KUEUE,), self.resources, self.verbs)


@dataclass(frozen=True, slots=True)
class FeatureGate:
    """A feature gate with which Kueue needs more on a worker: `requirements`, or extra verbs of a kind."""

    default_on: VersionRange
    """The releases in which it is on by default."""
    requirements: tuple[RightsRequirement, ...] = ()


_WORKLOAD: Final = f"{_MULTIKUEUE}workload.go"
WORKLOADS: Final = (
    RightsRequirement(
        ("workloads",), ("create", "delete", "get", "list", "update", "watch"), VersionRange("0.6"), _WORKLOAD
    ),
    RightsRequirement(("workloads/status",), ("patch",), VersionRange("0.14.8, 0.15.3"), _WORKLOAD),
)
"""Update: finalizer, priority, scale-down; list: garbage collection; patch: eviction."""

EXTERNAL_SINCE: Final = VersionRange("0.14")
"""Source: externalframeworks. In 0.14 only with the gate MultiKueueAdaptersForCustomJobs."""

_TRAINING: Final = f"{_JOBS}kubeflow/jobs/"

FRAMEWORKS: Final[Mapping[str, Framework]] = {
    "batch/job": Framework(
        "batch",
        "v1",
        "jobs",
        VersionRange("0.8"),
        VersionRange("0.8"),
        f"{_JOBS}job",
        extra_verbs=(ExtraVerbs(("patch",), VersionRange("0.14"), _ELASTIC),),
    ),
    "jobset.x-k8s.io/jobset": Framework(
        "jobset.x-k8s.io", "v1alpha2", "jobsets", VersionRange("0.8"), VersionRange("0.8"), f"{_JOBS}jobset"
    ),
    "kubeflow.org/mpijob": Framework(
        "kubeflow.org", "v2beta1", "mpijobs", VersionRange("0.9"), VersionRange("0.8"), f"{_JOBS}mpijob"
    ),
    "kubeflow.org/paddlejob": Framework(
        "kubeflow.org",
        "v1",
        "paddlejobs",
        VersionRange("0.9"),
        VersionRange("0.8", until="0.19"),
        f"{_TRAINING}paddlejob",
    ),
    "kubeflow.org/pytorchjob": Framework(
        "kubeflow.org",
        "v1",
        "pytorchjobs",
        VersionRange("0.9"),
        VersionRange("0.8", until="0.19"),
        f"{_TRAINING}pytorchjob",
    ),
    "kubeflow.org/tfjob": Framework(
        "kubeflow.org",
        "v1",
        "tfjobs",
        VersionRange("0.9"),
        VersionRange("0.8", until="0.19"),
        f"{_TRAINING}tfjob",
    ),
    "kubeflow.org/xgboostjob": Framework(
        "kubeflow.org",
        "v1",
        "xgboostjobs",
        VersionRange("0.9"),
        VersionRange("0.8", until="0.19"),
        f"{_TRAINING}xgboostjob",
    ),
    "kubeflow.org/jaxjob": Framework(
        "kubeflow.org",
        "v1",
        "jaxjobs",
        VersionRange("0.12"),
        VersionRange("0.12", until="0.19"),
        f"{_TRAINING}jaxjob",
    ),
    "trainer.kubeflow.org/trainjob": Framework(
        "trainer.kubeflow.org",
        "v1alpha1",
        "trainjobs",
        VersionRange("0.14"),
        VersionRange("0.14"),
        f"{_JOBS}trainjob",
    ),
    "ray.io/rayjob": Framework(
        "ray.io", "v1", "rayjobs", VersionRange("0.11"), VersionRange("0.8"), f"{_JOBS}rayjob"
    ),
    "ray.io/raycluster": Framework(
        "ray.io",
        "v1",
        "rayclusters",
        VersionRange("0.11"),
        VersionRange("0.8"),
        f"{_JOBS}raycluster",
        extra_verbs=(ExtraVerbs(("patch",), VersionRange("0.19"), _ELASTIC),),
    ),
    "ray.io/rayservice": Framework(
        "ray.io",
        "v1",
        "rayservices",
        VersionRange("0.17"),
        VersionRange("0.17"),
        f"{_JOBS}rayservice",
        extra_verbs=(ExtraVerbs(("patch",), VersionRange("0.18.5, 0.19.1"), _SPEC_SYNC),),
    ),
    "workload.codeflare.dev/appwrapper": Framework(
        "workload.codeflare.dev",
        "v1beta2",
        "appwrappers",
        VersionRange("0.11"),
        VersionRange("0.11"),
        f"{_JOBS}appwrapper",
    ),
    "pod": Framework(
        "",
        "v1",
        "pods",
        VersionRange("0.11"),
        VersionRange("0.16"),
        f"{_JOBS}pod",
        extra_verbs=(ExtraVerbs(("list",), VersionRange("0.11.4", until="0.17.4")),),
    ),
    "statefulset": Framework(
        "apps", "v1", "statefulsets", VersionRange("0.16"), VersionRange("0.16"), f"{_JOBS}statefulset"
    ),
    "leaderworkerset.x-k8s.io/leaderworkerset": Framework(
        "leaderworkerset.x-k8s.io",
        "v1",
        "leaderworkersets",
        VersionRange("0.17"),
        VersionRange("0.16"),
        f"{_JOBS}leaderworkerset",
    ),
    "deployment": Framework(
        "apps", "v1", "", VersionRange("0.11"), VersionRange("0.16"), f"{_JOBS}deployment"
    ),
    "sparkoperator.k8s.io/sparkapplication": Framework(
        "sparkoperator.k8s.io", "v1beta2", "", VersionRange(""), VersionRange(""), f"{_JOBS}sparkapplication"
    ),
}
"""Shipped: config/components/manager/controller_manager_config.yaml, from 0.8.0 on."""

GATES: Final[Mapping[str, FeatureGate]] = {
    _ELASTIC: FeatureGate(VersionRange("0.18")),
    _SPEC_SYNC: FeatureGate(VersionRange("0.18.5, 0.19.1")),
    "MultiKueueOrchestratedPreemption": FeatureGate(
        VersionRange(""),
        (RightsRequirement(("workloads/status",), ("update",), VersionRange("0.17"), _WORKLOAD),),
    ),
    "MultiKueueManagerQuotaAutomation": FeatureGate(
        VersionRange(""),
        (
            RightsRequirement(
                ("clusterqueues", "localqueues"),
                ("list", "watch"),
                VersionRange("0.18"),
                f"{_MULTIKUEUE}remote_client.go",
            ),
        ),
    ),
}
"""Defaults: pkg/features/kube_features.go."""


def parse_release(text: str) -> KueueRelease | None:
    """Return the release that is written like 0.19.1, v0.19.1 or v0.20.0-rc.0; None for anything else."""
    found = _RELEASE.fullmatch(text)
    return KueueRelease(*map(int, found.groups()[:3])) if found else None


def default_frameworks(kueue: KueueRelease | None) -> tuple[str, ...]:
    """Return the job kinds that Kueue's shipped configuration enables; None: as ASSUMED."""
    return tuple(name for name, one in FRAMEWORKS.items() if one.shipped.has(kueue or ASSUMED))


def parse_external(text: str) -> ExternalFramework | str:
    """Return the kind that a name of Kueue's multiKueue.externalFrameworks means, or what is wrong with it.

    Kueue: Kind.version.group, split at the first two dots (ParseKindArg). The plural is guessed as
    Kubernetes guesses (UnsafeGuessKindToResource). Wildcards and core kinds are refused.
    """
    kind, _, rest = text.partition(".")
    version, _, group = rest.partition(".")
    if not (_KIND.fullmatch(kind) and _VERSION.fullmatch(version) and _GROUP.fullmatch(group)):
        return f"{text!r} is no Kind.version.group, like PipelineRun.v1.tekton.dev"
    return ExternalFramework(text, group, version, kind, _plural(kind.lower()))


def policy_rules(
    frameworks: Iterable[str],
    externals: Iterable[ExternalFramework] = (),
    gates: Iterable[str] = (),
    kueue: KueueRelease | None = None,
) -> tuple[PolicyRule, ...]:
    """Return the rules that MultiKueue needs on a worker, merged and sorted: the same for any order.

    `frameworks` are keys of FRAMEWORKS, `gates` those of GATES that are on beside those that are by default.
    `kueue`: the hub's; None: unknown, so what any release needs. A newer one than all that are known counts
    as the newest. Raises KeyError for unknown names.
    """
    verbs: dict[tuple[str, str], set[str]] = {}
    for rule in _rules(frameworks, externals, gates, kueue):
        for group in rule.groups:
            for resource in rule.resources:
                verbs.setdefault((group, resource), set()).update(rule.verbs)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in sorted(verbs.items()):
        merged.setdefault((group, tuple(sorted(allowed))), []).append(resource)
    return tuple(
        sorted(PolicyRule((group,), tuple(names), which) for (group, which), names in merged.items())
    )


def required_rights(
    frameworks: Iterable[str],
    externals: Iterable[ExternalFramework] = (),
    gates: Iterable[str] = (),
    kueue: KueueRelease | None = None,
) -> tuple[Right, ...]:
    """Return the same one by one, sorted, for SelfSubjectAccessReviews."""
    return tuple(
        sorted(
            Right(group, *_split(resource), verb)
            for rule in policy_rules(frameworks, externals, gates, kueue)
            for group in rule.groups
            for resource in rule.resources
            for verb in rule.verbs
        )
    )


def job_kinds(
    frameworks: Iterable[str], externals: Iterable[ExternalFramework] = (), kueue: KueueRelease | None = None
) -> tuple[JobKind, ...]:
    """Return the kinds without any one of which Kueue does not connect to a worker; Workloads aside."""
    known = ((name, FRAMEWORKS[name]) for name in frameworks)
    named = [JobKind(name, one.group, one.plural, one.version) for name, one in known if one.is_sent(kueue)]
    others = externals if EXTERNAL_SINCE.has(kueue) else ()
    return (*named, *(JobKind(one.name, one.group, one.plural, one.version) for one in others))


def _rules(
    frameworks: Iterable[str],
    externals: Iterable[ExternalFramework],
    gates: Iterable[str],
    kueue: KueueRelease | None,
) -> Iterator[PolicyRule]:
    on = {name: GATES[name] for name in gates}
    on |= {name: gate for name, gate in GATES.items() if gate.default_on.has(kueue)}
    for name in frameworks:
        yield from FRAMEWORKS[name].rules(kueue, on)
    if EXTERNAL_SINCE.has(kueue):
        yield from (one.rule for one in externals)
    requirements = (*WORKLOADS, *(one for gate in on.values() for one in gate.requirements))
    yield from (one.rule for one in requirements if one.since.has(kueue))


def _reached(bounds: str, kueue: KueueRelease) -> bool:
    """Whether it is not before the bound of its minor release, or else of the last one before it."""
    parsed = (tuple(map(int, bound.split("."))) for bound in bounds.split(", ") if bound)
    earlier = [bound for bound in parsed if bound[:2] <= kueue[:2]]
    return bool(earlier) and max(earlier) <= kueue


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
