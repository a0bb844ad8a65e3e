"""
ResourceFlavors of a worker: which Pods Kueue lets use them.

Pure. Source: Kueue `pkg/scheduler/flavorassigner`, `checkFlavorForPodSets`. The taints NoSchedule and
NoExecute of a flavor must be tolerated by the podSet, or by the flavor itself. Of the nodeSelector and the
required node affinity, only the label keys of the flavor count; before 0.17.6, 0.18.2 and 0.19, those of all
flavors of its resource group did, so that Kueue refused more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str
from placement_ac.core.api.job_spec import NAME_CHARS_MAX, NodeTerm, PodNodes, Toleration
from placement_ac.core.api.label_selector import Requirement

_MOST: Final = 8
"""Kueue: of node labels, of taints and of tolerations."""
_REPELS: Final = ("NoSchedule", "NoExecute")

Taint = tuple[str, str, str]
"""Key, value and effect."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """The nodes of a ResourceFlavor."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    """Those that Pods must tolerate."""

    def admits(self, pods: PodNodes) -> bool:
        """Whether Kueue may give Pods this flavor."""
        return self._is_tolerated_by(pods) and self._is_selected_by(pods.terms)

    def _is_tolerated_by(self, pods: PodNodes) -> bool:
        if pods.tolerations is None:
            return True
        return all(any(one.tolerates(*taint) for one in pods.tolerations) for taint in self.taints)

    def _is_selected_by(self, terms: tuple[NodeTerm, ...]) -> bool:
        return not terms or any(all(map(self._meets, term)) for term in map(self._judged, terms))

    def _judged(self, term: NodeTerm) -> NodeTerm:
        return tuple([requirement for requirement in term if requirement.key in self.labels])

    def _meets(self, requirement: Requirement) -> bool:
        return requirement.is_met_by(self.labels)


def flavor_of(raw: Obj) -> Flavor | None:
    """Return the nodes of a ResourceFlavor; None: it is not as Kueue lets one be."""
    labels = get_dict(raw, "spec", "nodeLabels")
    taints = [_texts(one, "key", "value", "effect") for one in get_list(raw, "spec", "nodeTaints")]
    parts = "key", "operator", "value", "effect"
    own = [Toleration(*_texts(one, *parts)) for one in get_list(raw, "spec", "tolerations")]
    texts = (*labels, *labels.values(), *chain.from_iterable((*taints, *own)))
    if max(map(len, (labels, taints, own))) > _MOST or not all(map(_is_short, texts)):
        return None
    repels = [(key, value, effect) for key, value, effect in taints if effect in _REPELS]
    return Flavor(
        dict(labels), tuple(taint for taint in repels if not any(one.tolerates(*taint) for one in own))
    )


def _texts(raw: Obj, *names: str) -> list[str]:
    return [get_str(raw, name) for name in names]


def _is_short(text: object) -> bool:
    return isinstance(text, str) and len(text) <= NAME_CHARS_MAX
