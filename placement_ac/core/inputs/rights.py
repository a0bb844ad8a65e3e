"""
The RBAC rules that Kueue's MultiKueue needs on a worker cluster, and no more.

Pure. Read in Kueue's source (every release from 0.11.0 to 0.19.2, main of August 2026) and in the changelog
of 0.20.0: each adapter's verbs, pkg/controller/admissionchecks/multikueue for Workloads, pkg/features for
gates. A watch is opened without a list before it, so `list` is granted only where something is listed.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from placement_ac.core.api.constants import KUEUE

_MULTIKUEUE: Final = "pkg/controller/admissionchecks/multikueue/"
_VERBS_TO_SEND: Final = ("create", "delete", "get", "watch")
_ELASTIC: Final = "ElasticJobsViaWorkloadSlices"
_SPEC_SYNC: Final = "MultiKueueRemoteSpecSync"
_RAY_AUTOSCALING: Final = "MultiKueueRayInTreeAutoscaling"

_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
_VERSION: Final = re.compile(r"v[1-9][0-9]{0,3}((alpha|beta)[1-9][0-9]{0,3})?")
_GROUP: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
RELEASE: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})\.([0-9]{1,4})([-+][0-9A-Za-z.+-]{1,40})?")
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
    """The first releases after it, in the same notation; "": it has no end."""

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
    names: tuple[str, ...] = ()
    """Of the objects; (): all."""

    def as_dict(self) -> dict[str, list[str]]:
        """Return the PolicyRule of rbac.authorization.k8s.io/v1."""
        names = {"resourceNames": [*self.names]} if self.names else {}
        return {"apiGroups": [*self.groups], "resources": [*self.resources], **names, "verbs": [*self.verbs]}


class Right(NamedTuple):
    """One verb on one resource: the resourceAttributes of a SelfSubjectAccessReview."""

    group: str
    resource: str
    subresource: str
    verb: str

    @property
    def rule_resource(self) -> str:
        """The resource as a PolicyRule has it: <plural>[/<subresource>]."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


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
    verbs: tuple[str, ...]
    since: VersionRange
    source: str
    group: str = KUEUE

    @property
    def rule(self) -> PolicyRule:
        """The rule that it needs."""
        return PolicyRule((self.group,), self.resources, self.verbs)


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

DISPATCHER: Final = RightsRequirement(
    ("clusterqueues", "localqueues"), ("list",), VersionRange("0.1"), "placement_ac/workers/queues.py"
)
"""For our own dispatcher and for scores, not for MultiKueue: a worker without it is as fit as any."""

FLAVORS: Final = RightsRequirement(
    ("resourceflavors",), ("list",), VersionRange("0.1"), "placement_ac/workers/flavors.py"
)
"""For our own dispatcher: to compare a job with the flavors that its Pods may use."""

NODES: Final = RightsRequirement(
    ("nodes",), ("list",), VersionRange("0.1"), "placement_ac/workers/scores.py", ""
)
"""For the score of a cluster's GPUs."""

EXTERNAL_SINCE: Final = VersionRange("0.14")
"""Source: externalframeworks. In 0.14 only with the gate MultiKueueAdaptersForCustomJobs."""

_EXTRA_VERBS: Final = {
    "batch/job": (ExtraVerbs(("patch",), VersionRange("0.14"), _ELASTIC),),
    "ray.io/raycluster": (ExtraVerbs(("patch",), VersionRange("0.19"), _ELASTIC),),
    "ray.io/rayjob": (ExtraVerbs(("patch",), VersionRange("0.20"), _RAY_AUTOSCALING),),
    "ray.io/rayservice": (
        ExtraVerbs(("patch",), VersionRange("0.18.5, 0.19.1"), _SPEC_SYNC),
        ExtraVerbs(("patch",), VersionRange("0.20.3"), _RAY_AUTOSCALING),
    ),
    "pod": (ExtraVerbs(("list",), VersionRange("0.11.4", until="0.17.4")),),
}
"""By Kueue's code; its published rights for workers have `update` on RayClusters, too, which nothing uses."""
_NOT_SENT: Final = ("deployment", "sparkoperator.k8s.io/sparkapplication")
_GROUPS: Final = {"deployment": "apps", "statefulset": "apps"}
"""The group of a kind where Kueue's name for the kind does not begin with it."""


def _framework(name: str, version: str, since: str, shipped: str, until: str) -> Framework:
    prefix, _, kind = name.rpartition("/")
    folder = "kubeflow/jobs/" if prefix == "kubeflow.org" and kind != "mpijob" else ""
    return Framework(
        group=_GROUPS.get(name, prefix),
        version=version,
        plural="" if name in _NOT_SENT else f"{kind}s",
        since=VersionRange(since),
        shipped=VersionRange(shipped, until),
        source=f"pkg/controller/jobs/{folder}{kind}",
        extra_verbs=_EXTRA_VERBS.get(name, ()),
    )


FRAMEWORKS: Final[Mapping[str, Framework]] = {
    name: _framework(name, *columns)
    for name, *columns in (
        # job kind, version, in MultiKueue since, shipped since, shipped until
        ("batch/job", "v1", "0.8", "0.8", ""),
        ("jobset.x-k8s.io/jobset", "v1alpha2", "0.8", "0.8", ""),
        ("kubeflow.org/mpijob", "v2beta1", "0.9", "0.8", ""),
        ("kubeflow.org/paddlejob", "v1", "0.9", "0.8", "0.19"),
        ("kubeflow.org/pytorchjob", "v1", "0.9", "0.8", "0.19"),
        ("kubeflow.org/tfjob", "v1", "0.9", "0.8", "0.19"),
        ("kubeflow.org/xgboostjob", "v1", "0.9", "0.8", "0.19"),
        ("kubeflow.org/jaxjob", "v1", "0.12", "0.12", "0.19"),
        ("trainer.kubeflow.org/trainjob", "v1alpha1", "0.14", "0.14", ""),
        ("ray.io/rayjob", "v1", "0.11", "0.8", ""),
        ("ray.io/raycluster", "v1", "0.11", "0.8", ""),
        ("ray.io/rayservice", "v1", "0.17", "0.17", ""),
        ("workload.codeflare.dev/appwrapper", "v1beta2", "0.11", "0.11", ""),
        ("pod", "v1", "0.11", "0.16", ""),
        ("statefulset", "v1", "0.16", "0.16", ""),
        ("leaderworkerset.x-k8s.io/leaderworkerset", "v1", "0.17", "0.16", ""),
        ("deployment", "v1", "0.11", "0.16", ""),
        ("sparkoperator.k8s.io/sparkapplication", "v1beta2", "", "", ""),
    )
}
"""Shipped: config/components/manager/controller_manager_config.yaml, from 0.8.0 on."""

PREEMPTION_RIGHT: Final = Right(KUEUE, "workloads", "status", "update")
"""To open the preemption gates of a copy (MultiKueueOrchestratedPreemption). A worker without it connects and
runs jobs, so it is used, with a warning."""

GATES: Final[Mapping[str, FeatureGate]] = {
    _ELASTIC: FeatureGate(VersionRange("0.18")),
    _SPEC_SYNC: FeatureGate(VersionRange("0.18.5, 0.19.1")),
    "MultiKueueOrchestratedPreemption": FeatureGate(
        VersionRange("0.20"),
        (
            RightsRequirement(
                (PREEMPTION_RIGHT.rule_resource,), (PREEMPTION_RIGHT.verb,), VersionRange("0.17"), _WORKLOAD
            ),
        ),
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
    # The autoscaler resizes the RayCluster of a RayJob, which has no copy on the hub.
    _RAY_AUTOSCALING: FeatureGate(
        VersionRange(""),
        (
            RightsRequirement(
                ("rayclusters",), ("get",), VersionRange("0.20"), "pkg/controller/jobs/rayjob", "ray.io"
            ),
        ),
    ),
}
"""Defaults: pkg/features/kube_features.go; of 0.20 by its changelog (16235)."""


class RunningKueue(NamedTuple):
    """The hub's Kueue, as far as it is known."""

    release: KueueRelease | None = None
    gates: tuple[tuple[str, bool], ...] | None = None
    """The feature gates that are set, sorted; the others are as the release has them. None: unknown."""


UNKNOWN_KUEUE: Final = RunningKueue()


def is_on(gate: str, default_on: VersionRange, gates: Mapping[str, bool], kueue: KueueRelease | None) -> bool:
    """Whether a feature gate is on. AllAlpha and AllBeta count; a gate that is on by default is beta."""
    default = default_on.has(kueue)
    return gates.get(gate, gates.get("AllBeta" if default else "AllAlpha", default))


def parse_release(text: str) -> KueueRelease | None:
    """Return the release that is written like 0.19.1, v0.19.1 or v0.20.0-rc.0; None for anything else."""
    match = RELEASE.fullmatch(text)
    return KueueRelease(*map(int, match.groups()[:3])) if match else None


def default_frameworks(kueue: KueueRelease | None) -> tuple[str, ...]:
    """Return the job kinds that Kueue's shipped configuration enables; None: as ASSUMED."""
    return tuple(name for name, framework in FRAMEWORKS.items() if framework.shipped.has(kueue or ASSUMED))


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


def required_rights(
    frameworks: Iterable[str],
    externals: Iterable[ExternalFramework] = (),
    gates: Mapping[str, bool] | None = None,
    kueue: KueueRelease | None = None,
) -> tuple[Right, ...]:
    """Return the rights that MultiKueue needs on a worker, sorted, for SelfSubjectAccessReviews.

    `frameworks` are keys of FRAMEWORKS, `gates` the feature gates that are set.
    `kueue`: the hub's; None: unknown, so what any release needs. A newer one than all that are known counts
    as the newest. Raises KeyError for an unknown framework.
    """
    on = {name: gate for name, gate in GATES.items() if is_on(name, gate.default_on, gates or {}, kueue)}
    rules = [rule for name in frameworks for rule in FRAMEWORKS[name].rules(kueue, on)]
    rules += [external.rule for external in externals] if EXTERNAL_SINCE.has(kueue) else []
    requirements = (*WORKLOADS, *(requirement for gate in on.values() for requirement in gate.requirements))
    rules += [requirement.rule for requirement in requirements if requirement.since.has(kueue)]
    rights = {
        Right(group, *resource.partition("/")[::2], verb)
        for rule in rules
        for group in rule.groups
        for resource in rule.resources
        for verb in rule.verbs
    }
    return tuple(sorted(rights))


def policy_rules(
    frameworks: Iterable[str],
    externals: Iterable[ExternalFramework] = (),
    gates: Mapping[str, bool] | None = None,
    kueue: KueueRelease | None = None,
) -> tuple[PolicyRule, ...]:
    """Return `required_rights` as rules, merged and sorted: the same for any order."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in required_rights(frameworks, externals, gates, kueue):
        verbs.setdefault((right.group, right.rule_resource), []).append(right.verb)
    merged: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (group, resource), allowed in verbs.items():
        merged.setdefault((group, tuple(allowed)), []).append(resource)
    return tuple(
        sorted(PolicyRule((group,), tuple(names), which) for (group, which), names in merged.items())
    )


def job_kinds(
    frameworks: Iterable[str], externals: Iterable[ExternalFramework] = (), kueue: KueueRelease | None = None
) -> tuple[JobKind, ...]:
    """Return the kinds without any one of which Kueue does not connect to a worker; Workloads aside."""
    known = ((name, FRAMEWORKS[name]) for name in frameworks)
    named = [JobKind(name, f.group, f.plural, f.version) for name, f in known if f.is_sent(kueue)]
    others = externals if EXTERNAL_SINCE.has(kueue) else ()
    return (*named, *(JobKind(e.name, e.group, e.plural, e.version) for e in others))


def _reached(bounds: str, kueue: KueueRelease) -> bool:
    """Whether it is not before the bound of its minor release, or else of the last one before it."""
    parsed = (tuple(map(int, bound.split("."))) for bound in bounds.split(", ") if bound)
    earlier = [bound for bound in parsed if bound[:2] <= kueue[:2]]
    return bool(earlier) and max(earlier) <= kueue


def _plural(singular: str) -> str:
    if singular.endswith(_ALWAYS_PLURAL):
        return singular
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular.removesuffix('y')}ies"
    return f"{singular}s"
