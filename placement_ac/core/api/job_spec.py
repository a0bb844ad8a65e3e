"""
The wishes of a Workload about its cluster: annotations, labels, node requirements, and resources.

Pure. Kueue keeps the templates of the podSets in a Workload with their annotations, labels and node
requirements, but does not copy a Job's own annotations. Most Workloads of a queue ask for the same, so equal
specs are one object. The values of labels may name a run, so they are kept beside it: only the anti-affinity
of other jobs reads them. Anybody who may create a Job writes all this, so it is read under limits, in linear
time: of a Workload that is over one, nothing is kept but which limit that is. Of too many tolerations none is
kept. All that is kept of one Workload has a limit in bytes as well; `cache.workloads` bounds that of all.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, islice, repeat
from typing import Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary, ref

from placement_ac.core.api.constants import (
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_DATA,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
    OUR_DOMAIN,
)
from placement_ac.core.api.fields import Obj, get_dict, get_int, get_list, get_str, get_strs, get_texts
from placement_ac.core.api.label_selector import Requirement
from placement_ac.core.api.pod_requests import PODS, Requests, podset_requests
from placement_ac.core.api.quantities import milli
from placement_ac.core.api.text import shortened

JOB_ANNOTATIONS: Final = (
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_PREFERRED_CLUSTERS,
    ANNOTATION_GROUP,
    ANNOTATION_DATA,
)
OUR_ANNOTATIONS: Final = tuple(name for name in JOB_ANNOTATIONS if name.startswith(OUR_DOMAIN))
_IGNORED_MAX: Final = 5
"""So many keys of our domain that nobody reads are reported."""
_OF_ONE_JOB: Final = (
    "kueue.x-k8s.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pod-template-",
)
"""Prefixes of labels that Kubernetes and Kueue set, and that differ from job to job."""

ANNOTATION_CHARS_MAX: Final = 8192
"""More than 20 names of clusters, which Kubernetes limits to 253 characters."""
PODSETS_MAX: Final = 64
"""Kueue: at most 18."""
NAMES_MAX: Final = 256
"""Labels of a Workload and its templates together; resources of a podSet."""
TERMS_MAX: Final = 256
"""Keys and values of the requirements on nodes of a podSet, or of those on clusters in an annotation."""
SIZE_MAX: Final = 512
"""Of all that is compared with a cluster together (`JobSpec.size`)."""
COMPARED_MAX: Final = 32
"""So many tolerations of a podSet are compared with the taints of each flavor of a worker."""
SHARED_CHARS_MAX: Final = 512
"""Of the values of a Workload's labels together: those that are remembered take 5 MB at most."""
KEPT_BYTES_MAX: Final = 32_768
"""Of all that is kept of a Workload together: a usual one takes 1 to 2 KB."""
TEXT_BYTES: Final = 57
"""CPython: the bytes that a text and its place in a tuple take besides its characters."""
NAME_CHARS_MAX: Final = 317
"""Kubernetes: a key has at most 253 characters before the slash, and 63 after it; a value has 63."""

Text = TypeVar("Text", str, tuple[str, ...])
Pairs = tuple[tuple[str, str], ...]
"""A mapping of texts that can be compared and hashed, sorted by key."""
NodeTerm = tuple[Requirement, ...]
"""Requirements on a node's labels, of which all must be met."""


class Toleration(NamedTuple):
    """An entry of a Pod's `tolerations`; how long it tolerates is for nodes."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, key: str, value: str, effect: str) -> bool:
        """Whether it matches a taint of a node.

        Kubernetes: an empty key with `Exists` matches all, an empty effect each effect; `Gt` and `Lt`
        compare whole numbers, the taint's first.
        """
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        if self.operator == "Exists":
            return True
        if self.operator in ("Gt", "Lt"):
            return Requirement(key, self.operator, (self.value,)).accepts(value)
        return self.operator in ("", "Equal") and (self.key, self.value) == (key, value)


class PodNodes(NamedTuple):
    """The nodes that the Pods of a podSet may use."""

    terms: tuple[NodeTerm, ...] = ()
    """The alternatives of their requirements on nodes; none: any node."""
    tolerations: tuple[Toleration, ...] | None = ()
    """None: they are too many to be compared with the taints of flavors."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class JobSpec:
    """The wishes of one Workload."""

    queue: str = ""
    """The LocalQueue's name; it is in the Workload's namespace."""
    annotations: Pairs = ()
    """Those that choose clusters: the Workload's own, or else those of its first podSet that has them."""
    label_keys: tuple[str, ...] = ()
    """The keys of its labels and of those of its podSets' templates, without those that are unique to a job;
    sorted."""
    nodes: tuple[tuple[NodeTerm, ...], ...] = ()
    """For each podSet with requirements on nodes: the alternatives."""
    requests: tuple[Requests, ...] = ()
    """For each podSet that asks for resources: how much of each its Pods need together, in thousandths."""
    pods: tuple[PodNodes, ...] = ()
    """For each podSet of `requests`: the nodes that its Pods may use; empty if no podSet says anything."""
    has_uncounted_claims: bool = False
    """Whether a podSet has ResourceClaims for which Kueue on the hub has counted no resource."""
    seconds: int | None = None
    """How long it may run, as it says itself; None: it does not."""
    ignored: tuple[str, ...] = ()
    """Keys of our domain that nobody reads: annotations that do not exist, and labels."""
    problem: str = ""
    """The limit that it is over, and what to do; it has no other wishes then."""
    tolerations: tuple[tuple[Toleration, ...], ...] = ()
    """For each podSet: what its Pods tolerate; empty if none tolerates anything."""
    tolerations_problem: str = ""
    """The limit that they are over, and what to do; they are not known then."""
    kind: str = ""
    """The kind of its job, as `Job.v1.batch` or `Pod.v1.`; "": it has none."""
    kept_bytes: int = field(default=0, repr=False, compare=False)
    """About how many bytes it takes."""

    def annotation(self, name: str) -> str:
        """Return the annotation, "" if it is not set."""
        for key, value in self.annotations:
            if key == name:
                return value.strip()
        return ""

    @property
    def size(self) -> int:
        """How much there is to compare with a cluster: requirements, values, names, resources."""
        listed = sum(text.count(",") + text.count(";") + 1 for _, text in self.annotations)
        nodes = sum(
            1 + len(requirement.values) for terms in self.nodes for term in terms for requirement in term
        )
        return listed + nodes + sum(map(len, self.requests))

    @property
    def asks(self) -> Iterator[tuple[Requests, PodNodes]]:
        """For each podSet that asks for resources: for how much, and the nodes that its Pods may use."""
        return zip(self.requests, self.pods or repeat(PodNodes()), strict=False)

    @property
    def total_requests(self) -> Requests:
        """How much of each resource all podSets need together."""
        total: dict[str, int] = {}
        for resource, amount in chain.from_iterable(self.requests):
            total[resource] = total.get(resource, 0) + amount
        return tuple(total.items())


_COUNTS: Final = (("admission", "podSetAssignments"), "resourceUsage"), (("resourceRequests",), "resources")
"""Where the status of a Workload has what Kueue has counted for a podSet; the second, before it has quota."""
NO_JOB: Final = JobSpec()
_KNOWN: Final = WeakKeyDictionary[JobSpec, ref[JobSpec]]()


def job_spec(raw: Obj) -> JobSpec:
    """Read the spec of a Workload; whatever has another shape counts as absent."""
    podsets, metas = get_list(raw, "spec", "podSets"), _metas(raw)
    pods = [get_dict(podset, "template", "spec") for podset in podsets]
    queue, counted = get_str(raw, "spec", "queueName"), _counted(raw)
    tolerations, tolerations_problem = _tolerations(pods)
    try:
        _limit("podSets", PODSETS_MAX, len(podsets))
        labels = _checked_labels(metas)
        nodes = [_node_terms(pod) for pod in pods]
        requests = [_requests(podset, counted) for podset in podsets]
        claimed = [_claimed(raw, podset) for podset in podsets]
        requests = [_with_claimed(one, more) for one, more in zip(requests, claimed, strict=True)]
        spec = JobSpec(
            queue=queue,
            kind=_kind(raw),
            annotations=_annotations(metas),
            label_keys=tuple(labels),
            nodes=tuple(filter(None, nodes)),
            tolerations=tolerations,
            tolerations_problem=tolerations_problem,
            requests=tuple(filter(None, requests)),
            pods=_pod_nodes(requests, nodes, None if tolerations_problem else tolerations),
            has_uncounted_claims=any(more is not None and not more for more in claimed),
            seconds=_seconds(raw, pods),
            ignored=tuple(islice(dict.fromkeys(_ignored(metas)), _IGNORED_MAX)),
        )
        _limit("requirements, preferences, names and resources in all", SIZE_MAX, spec.size)
        spec = _shared(spec)
        _limit_bytes(spec.kept_bytes + kept_bytes(tuple(labels.values())))
    except _OverLimit as problem:
        return _shared(JobSpec(queue=queue, problem=str(problem)))
    return spec


def kept_bytes(kept: object) -> int:
    """Return about how many bytes a text, or tuples of tuples of texts, take."""
    if isinstance(kept, str):
        return TEXT_BYTES + len(kept.encode(errors="replace")) if kept else 0
    return sum(map(kept_bytes, kept)) if isinstance(kept, tuple) else 0


def surplus_of(namespace: str, queue: str) -> JobSpec:
    """Return the spec of a Workload whose wishes are not kept: those of its namespace are too many."""
    why = f"the jobs of namespace {namespace} have the most of what is kept of all jobs together"
    todo = "shorten the labels, annotations, node requirements and tolerations of its jobs"
    return _shared(JobSpec(queue, problem=f"{todo}, or have fewer of them at once: {why}"))


def label_values(raw: Obj, spec: JobSpec) -> tuple[str, ...]:
    """Return the values of `spec.label_keys` in the Workload from which `spec` was read.

    Equal ones are mostly one object.
    """
    if not spec.label_keys:
        return ()
    values = tuple(map(_same, _merged(map(_labels, _metas(raw)), spec.label_keys).values()))
    return _same(values) if sum(map(len, values)) <= SHARED_CHARS_MAX else values


def owner_of(raw: Obj) -> Obj:
    """Return the ownerReference of a Workload to its job, its controller; {}: it is not clear which."""
    owners = get_list(raw, "metadata", "ownerReferences")
    controllers = [one for one in owners if isinstance(one, dict) and one.get("controller") is True]
    return next(iter(controllers or (owners if len(owners) == 1 else ())), {})


def _tolerations(pods: Sequence[Obj]) -> tuple[tuple[tuple[Toleration, ...], ...], str]:
    """Return the tolerations of each podSet, or the limit that they are over."""
    try:
        podsets = tuple(_tolerations_of(pod) for pod in pods[:PODSETS_MAX])
    except _OverLimit as problem:
        return (), str(problem)
    return podsets if any(podsets) else (), ""


def _tolerations_of(pod: Obj) -> tuple[Toleration, ...]:
    given = get_list(pod, "tolerations")
    _limit("tolerations in a podSet", NAMES_MAX, len(given))
    parts = ("key", "operator", "value", "effect")
    found = {Toleration(*(get_str(one, part) for part in parts)) for one in given}
    _limit_names(chain.from_iterable(found), "tolerations")
    return tuple(sorted(found))


def _pod_nodes(
    requests: Sequence[Requests],
    nodes: Sequence[tuple[NodeTerm, ...]],
    tolerations: tuple[tuple[Toleration, ...], ...] | None,
) -> tuple[PodNodes, ...]:
    """Return the nodes that the Pods of each podSet with requests may use, if one says anything of them.

    `tolerations`: of each podSet; empty: none tolerates anything; None: they are not known.
    """
    of_podsets: Iterable[tuple[Toleration, ...] | None] = repeat(None)
    if tolerations is not None:
        of_podsets = (one if len(one) <= COMPARED_MAX else None for one in tolerations or repeat(()))
    pods = zip(requests, nodes, of_podsets, strict=False)
    asking = tuple([PodNodes(terms, tolerated) for asked, terms, tolerated in pods if asked])
    return asking if any(one != PodNodes() for one in asking) else ()


def _kind(raw: Obj) -> str:
    owner = owner_of(raw)
    group, _, version = get_str(owner, "apiVersion").rpartition("/")
    kind = f"{get_str(owner, 'kind')}.{version}.{group}"
    return kind if version and len(kind) <= NAME_CHARS_MAX else ""


class _OverLimit(ValueError):
    """A Workload has more of something than is read."""


def _limit(what: str, most: int, number: int) -> None:
    if number > most:
        raise _OverLimit(f"use fewer {what}: at most {most:,} are read, it has {number:,}")


def _limit_bytes(number: int) -> None:
    if number > KEPT_BYTES_MAX:
        of = "labels, annotations, node requirements and tolerations"
        why = f"at most {KEPT_BYTES_MAX:,} bytes are kept, they take {number:,}"
        raise _OverLimit(f"shorten its {of}: {why}")


def _limit_names(texts: Iterable[str], of: str = "labels, nodes or resources") -> None:
    longest = max(map(len, texts), default=0)
    if longest > NAME_CHARS_MAX:
        why = f"at most {NAME_CHARS_MAX} characters are read, one has {longest:,}"
        raise _OverLimit(f"shorten the names of {of}: {why}")


def _annotations(metas: Sequence[Obj]) -> Pairs:
    annotations = _merged((get_texts(meta, "annotations") for meta in metas), JOB_ANNOTATIONS)
    for name, value in annotations.items():
        if len(value) > ANNOTATION_CHARS_MAX:
            why = f"at most {ANNOTATION_CHARS_MAX:,} characters are read, it has {len(value):,}"
            raise _OverLimit(f"shorten the annotation {name}: {why}")
    return tuple(annotations.items())


def _ignored(metas: Sequence[Obj]) -> Iterator[str]:
    for meta in metas:
        annotations, labels = get_dict(meta, "annotations"), get_dict(meta, "labels")
        wrong = (key for key in annotations if key not in JOB_ANNOTATIONS)
        yield from (shortened(key) for key in (*wrong, *labels) if key.startswith(OUR_DOMAIN))


def _metas(raw: Obj) -> list[Obj]:
    """Return the metadata of a Workload and of its podSets' templates."""
    podsets = get_list(raw, "spec", "podSets")
    return [get_dict(raw, "metadata"), *(get_dict(podset, "template", "metadata") for podset in podsets)]


def _labels(meta: Obj) -> dict[str, str]:
    return get_texts(meta, "labels")


def _checked_labels(metas: Sequence[Obj]) -> dict[str, str]:
    labels = _merged(map(_labels, metas))
    _limit("labels", NAMES_MAX, len(labels))
    _limit_names(chain.from_iterable(labels.items()))
    return labels


def _requests(podset: Obj, counted: frozenset[str]) -> Requests:
    requests = podset_requests(podset, counted)
    _limit("resources in a podSet", NAMES_MAX, sum(name != PODS for name, _ in requests))
    _limit_names(name for name, _ in requests)
    return requests


def _claimed(raw: Obj, podset: Obj) -> Requests | None:
    """Return the resources that Kueue on the hub has counted for the ResourceClaims of a podSet.

    They are those that its Pods do not request (Kueue: `resources.deviceClassMappings`). Empty: it has
    counted none, and None: there is no ResourceClaim.
    """
    if not get_list(podset, "template", "spec", "resourceClaims"):
        return None
    requested = {PODS, *(name for name, _ in podset_requests(podset))}
    for where, part in _COUNTS:
        for entry in get_list(raw, "status", *where):
            if get_str(entry, "name") == get_str(podset, "name"):
                amounts = ((name, milli(text) or 0) for name, text in get_dict(entry, part).items())
                return tuple(
                    sorted((name, one) for name, one in amounts if one > 0 and name not in requested)
                )
    return ()


def _with_claimed(requests: Requests, more: Requests | None) -> Requests:
    """Return requests with those of ResourceClaims."""
    both = tuple(sorted((*requests, *(more or ()))))
    _limit("resources in a podSet", NAMES_MAX, len(both) - 1)
    return both


def _seconds(raw: Obj, pods: Sequence[Obj]) -> int | None:
    """Return how long it may run: Kueue's limit, from the job's label `max-exec-time-seconds`, or its Pods'.

    The deadline of a Job itself is not in its Workload.
    """
    of_pods = [get_int(pod, "activeDeadlineSeconds") for pod in pods]
    most = get_int(raw, "spec", "maximumExecutionTimeSeconds")
    return most or max((seconds for seconds in of_pods if seconds), default=None)


def _counted(raw: Obj) -> frozenset[str]:
    """Return the resources for which Kueue has reserved quota on the hub; none before it has."""
    assignments = get_list(raw, "status", "admission", "podSetAssignments")
    return frozenset(name for assignment in assignments for name in get_dict(assignment, "resourceUsage"))


def _shared(spec: JobSpec) -> JobSpec:
    """Return the equal one that a Workload has, or `spec`: it goes with the last Workload that has it."""
    known = _KNOWN.get(spec)
    equal = known() if known else None
    if equal is None:
        parts = spec.annotations, spec.label_keys, spec.nodes, spec.requests, spec.tolerations, spec.ignored
        object.__setattr__(spec, "kept_bytes", kept_bytes(parts))  # once for all that share it
        _KNOWN[spec] = ref(spec)
    return equal or spec


@lru_cache(maxsize=256)
def _same(text: Text) -> Text:
    """Return the equal one that another Workload has lately had, or `text`."""
    return text


def _merged(parts: Iterable[Mapping[str, str]], names: tuple[str, ...] = ()) -> dict[str, str]:
    """Return all parts together, sorted by key, the first part's values before the others'."""
    merged: dict[str, str] = {}
    for part in parts:
        wanted = names or [key for key in part if not key.startswith(_OF_ONE_JOB)]
        for name in wanted:
            if name in part:
                merged.setdefault(name, part[name])
    return dict(sorted(merged.items()))


def _node_terms(pod: Obj) -> tuple[NodeTerm, ...]:
    """Return the alternatives of a Pod: its nodeSelector, with each term of its required node affinity."""
    selector = get_texts(pod, "nodeSelector")
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    alternatives = get_list(pod, "affinity", "nodeAffinity", required, "nodeSelectorTerms")
    expressions = [
        match_expression for term in alternatives for match_expression in get_list(term, "matchExpressions")
    ]
    values = sum(
        len(expression["values"]) for expression in expressions if isinstance(expression.get("values"), list)
    )
    size = 2 * len(selector) * max(len(alternatives), 1) + len(expressions) + values
    _limit(
        "keys and values in the requirements of a podSet on nodes", TERMS_MAX, max(size, len(alternatives))
    )
    fixed = tuple([Requirement(key, "In", (value,)) for key, value in sorted(selector.items())])
    terms = [fixed + _requirements(term) for term in alternatives] or ([fixed] if fixed else [])
    _limit_names(
        text
        for term in terms
        for requirement in term
        for text in (requirement.key, requirement.operator, *requirement.values)
    )
    return tuple(terms)


def _requirements(term: Obj) -> NodeTerm:
    return tuple(
        Requirement(
            get_str(match_expression, "key"),
            get_str(match_expression, "operator"),
            tuple(get_strs(match_expression, "values")),
        )
        for match_expression in get_list(term, "matchExpressions")
    )
