"""
The namespaces whose jobs a Kueue manages, by `managedJobsNamespaceSelector` of its configuration. Pure.

Elsewhere Kueue leaves a job alone, whatever its queue. On the hub its webhook suspends a job with a queue all
the same, and nothing starts it (seen on main ff69552e); where that webhook leaves the namespace out, the job
runs at once, beside all quota. Its copy on a worker stays suspended (jobframework/reconciler.go). Where the
gate ManagedJobsNamespaceSelectorAlwaysRespected (on since 0.15, locked since 0.19) is off, that is so only
for jobs without a queue.
"""

from collections.abc import Mapping
from typing import Final

from kubectl_placement.hub.dump import Object
from placement_ac.core.api.fields import Obj, get_dict, get_value, labels_of
from placement_ac.core.api.label_selector import SelectorError, first_unmet, read_label_selector
from placement_ac.core.inputs.rights import KueueRelease, VersionRange, is_on

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that Kubernetes gives each namespace: its name."""
GATE: Final = "ManagedJobsNamespaceSelectorAlwaysRespected"
RESPECTED: Final = VersionRange("0.15")
FIELD: Final = "managedJobsNamespaceSelector"


def selects_namespaces(config: Obj) -> bool:
    """Whether a Kueue of this configuration has a selector of its own."""
    return get_value(config, FIELD) is not None


def unmanaged(
    config: Obj, gates: Mapping[str, bool], release: KueueRelease | None, namespaces: Mapping[str, Object]
) -> tuple[str, ...]:
    """Return those of these namespaces, by name, whose jobs a Kueue of this configuration leaves alone.

    Without a selector none is returned: the default one leaves out Kueue's own namespace and kube-system.
    """
    if not selects_namespaces(config) or not is_on(GATE, RESPECTED, gates, release):
        return ()
    try:
        selector = read_label_selector(get_dict(config, FIELD))
    except SelectorError:
        return ()  # Kueue does not start with it
    labels = {name: {NAME_LABEL: name, **labels_of(raw)} for name, raw in namespaces.items()}
    return tuple(name for name in sorted(labels) if first_unmet(selector, labels[name]) is not None)


def labels_wanted(config: Obj) -> tuple[str, ...]:
    """Return the labels, as KEY=VALUE, with which a namespace matches; (): labels alone do not say it."""
    texts = get_dict(config, FIELD, "matchLabels")
    if get_value(config, FIELD, "matchExpressions"):
        return ()
    return tuple(f"{key}={value}" for key, value in texts.items())


def unmanaged_text(config: Obj, name: str) -> str:
    """Return what to do about a namespace that the hub's Kueue leaves alone, and why."""
    labels = " ".join(labels_wanted(config)) or f"as {FIELD} says"
    return (
        f"label namespace {name} {labels}: Kueue on this hub does not manage it, as its {FIELD} selects"
        " others; a job there stays suspended for ever, or runs on the hub itself, beside all quota"
    )
