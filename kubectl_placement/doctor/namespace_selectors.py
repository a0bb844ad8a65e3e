"""The namespaces whose jobs a ClusterQueue admits, by its `namespaceSelector`. Pure."""

from collections.abc import Mapping

from kubectl_placement.doctor.commands import Kubectl
from kubectl_placement.doctor.finding import Finding, fail
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.managed_namespaces import NAME_LABEL
from placement_ac.core.api.fields import get_dict, get_value, labels_of, name_of
from placement_ac.core.api.label_selector import SelectorError, first_unmet, read_label_selector
from placement_ac.core.api.text import joined


def selects_none(kubectl: Kubectl, queue: Object) -> Finding | None:
    """Return that a ClusterQueue has no selector: Kueue then selects no namespace. None: it has one."""
    if get_value(queue, "spec", "namespaceSelector") is not None:
        return None
    name = name_of(queue)
    message = f"ClusterQueue {name} admits no job: it has no namespaceSelector, so it selects no namespace"
    return fail(
        message, kubectl.patch("clusterqueue", name, {"namespaceSelector": {}}), f"ClusterQueue {name}"
    )


def leaves_out(kubectl: Kubectl, queue: Object, namespaces: Mapping[str, Object]) -> Finding | None:
    """Return which of these namespaces, by name, the selector of a ClusterQueue leaves out; None: none."""
    left_out = [name for name, raw in namespaces.items() if not _selects(queue, name, raw)]
    if not left_out:
        return None
    name = name_of(queue)
    return fail(
        f"ClusterQueue {name} admits no job of namespace {joined(left_out)}: its namespaceSelector selects "
        "others",
        f"{kubectl.run('edit', 'clusterqueue', name)}  # spec.namespaceSelector",
        f"ClusterQueue {name}",
    )


def _selects(queue: Object, name: str, namespace: Object) -> bool:
    try:
        selector = read_label_selector(get_dict(queue, "spec", "namespaceSelector"))
    except SelectorError:
        return True  # Kueue's own condition says what is wrong with it
    return first_unmet(selector, {NAME_LABEL: name, **labels_of(namespace)}) is None
