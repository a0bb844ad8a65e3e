"""
The wishes of a Workload about its cluster: annotations, labels, node requirements, and resources.

Pure. Kueue keeps the templates of the podSets in a Workload with their annotations, labels and node
requirements, but does not copy a Job's own annotations. Most Workloads of a queue ask for the same, so equal
specs are one object.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from placement_ac.core.api.constants import (
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_GROUP,
    ANNOTATION_PREFERRED_CLUSTERS,
)
from placement_ac.core.api.label_selector import Requirement
from placement_ac.core.api.pod_requests import Requests, podset_requests
from placement_ac.core.api.schemas import Raw, as_mapping

_ANNOTATIONS: Final = (
    ANNOTATION_CLUSTER_NAMES,
    ANNOTATION_CLUSTER_SELECTOR,
    ANNOTATION_ANTI_AFFINITY,
    ANNOTATION_PREFERRED_CLUSTERS,
    ANNOTATION_GROUP,
)
_OF_ONE_JOB: Final = (
    "kueue.x-k8s.io/",
    "batch.kubernetes.io/",
    "controller-uid",
    "job-name",
    "pod-template-",
)
"""Prefixes of labels that Kubernetes and Kueue set, and that differ from job to job."""

Pairs = tuple[tuple[str, str], ...]
"""A mapping of texts that can be compared and hashed, sorted by key."""
NodeTerm = tuple[Requirement, ...]
"""Requirements on a node's labels, of which all must be met."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class JobSpec:
    """The wishes of one Workload."""

    queue: str = ""
    """The LocalQueue's name; it is in the Workload's namespace."""
    annotations: Pairs = ()
    """Those that choose clusters: the Workload's own, or else those of its first podSet that has them."""
    labels: Pairs = ()
    """Its labels and those of its podSets' templates, without those that are unique to a job."""
    nodes: tuple[tuple[NodeTerm, ...], ...] = ()
    """For each podSet with requirements on nodes: the alternatives."""
    requests: tuple[Requests, ...] = ()
    """For each podSet that asks for resources: how much of each its Pods need together, in thousandths."""

    def annotation(self, name: str) -> str:
        """Return the annotation, "" if it is not set."""
        return dict(self.annotations).get(name, "").strip()


NO_JOB: Final = JobSpec()
_KNOWN: Final = WeakKeyDictionary[JobSpec, ref[JobSpec]]()


def job_spec(raw: Raw) -> JobSpec:
    """Read the spec of a Workload; whatever has another shape counts as absent."""
    spec, metadata = as_mapping(raw.get("spec")), as_mapping(raw.get("metadata"))
    podsets = _mappings(spec.get("podSets"))
    templates = [as_mapping(one.get("template")) for one in podsets]
    nodes = (tuple(_node_terms(as_mapping(template.get("spec")))) for template in templates)
    metas = [metadata, *(as_mapping(template.get("metadata")) for template in templates)]
    queue, counted = spec.get("queueName"), _counted(raw)
    return _shared(
        JobSpec(
            queue=queue if isinstance(queue, str) else "",
            annotations=_merged((_texts(meta.get("annotations")) for meta in metas), _ANNOTATIONS),
            labels=_merged(_texts(meta.get("labels")) for meta in metas),
            nodes=tuple(terms for terms in nodes if terms),
            requests=tuple(filter(None, (podset_requests(one, counted) for one in podsets))),
        )
    )


def _counted(raw: Raw) -> frozenset[str]:
    """Return the resources for which Kueue has reserved quota on the hub; none before it has."""
    admission = as_mapping(as_mapping(raw.get("status")).get("admission"))
    usages = (as_mapping(one.get("resourceUsage")) for one in _mappings(admission.get("podSetAssignments")))
    return frozenset(name for usage in usages for name in usage)


def _shared(spec: JobSpec) -> JobSpec:
    """Return the equal one that a Workload has, or `spec`: it goes with the last Workload that has it."""
    known = _KNOWN.get(spec)
    found = known() if known else None
    if found is None:
        _KNOWN[spec] = ref(spec)
    return found or spec


def _merged(parts: Iterable[Mapping[str, str]], names: tuple[str, ...] = ()) -> Pairs:
    """Return the pairs of all parts, the first part's before the others'."""
    merged: dict[str, str] = {}
    for part in parts:
        wanted = names or [key for key in part if not key.startswith(_OF_ONE_JOB)]
        for name in wanted:
            if name in part:
                merged.setdefault(name, part[name])
    return tuple(sorted(merged.items()))


def _node_terms(pod: Raw) -> Iterator[NodeTerm]:
    """Yield the alternatives of a Pod: its nodeSelector, with each term of its required node affinity."""
    selector = _texts(pod.get("nodeSelector"))
    fixed = tuple([Requirement(key, "In", (value,)) for key, value in sorted(selector.items())])
    affinity = as_mapping(as_mapping(pod.get("affinity")).get("nodeAffinity"))
    required = as_mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [_requirements(term) for term in _mappings(required.get("nodeSelectorTerms"))]
    if terms:
        yield from (fixed + term for term in terms)
    elif fixed:
        yield fixed


def _requirements(term: Raw) -> NodeTerm:
    return tuple(
        Requirement(str(one.get("key", "")), str(one.get("operator", "")), tuple(_words(one.get("values"))))
        for one in _mappings(term.get("matchExpressions"))
    )


def _mappings(value: Any) -> list[Raw]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _words(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else []


def _texts(value: Any) -> dict[str, str]:
    return {key: text for key, text in as_mapping(value).items() if isinstance(text, str)}
