"""
The namespaces whose jobs a Kueue manages, by `managedJobsNamespaceSelector` of its configuration. Pure.

Elsewhere Kueue leaves a job alone, whatever its queue: on the hub it runs at once, beside all quota; its copy
on a worker stays suspended (jobframework/reconciler.go). Where the gate
ManagedJobsNamespaceSelectorAlwaysRespected (on since 0.15, locked since 0.19) is off, that is so only for
jobs without a queue.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubectl_placement.doctor.commands import HUB, Kubectl, for_comment
from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.kueue import HubKueue
from kubectl_placement.doctor.namespace_selectors import NAME_LABEL
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import LOCAL_QUEUE, NAMESPACE
from placement_ac.core.api.fields import Obj, get_dict, get_value, labels_of, name_of
from placement_ac.core.api.label_selector import SelectorError, first_unmet, read_label_selector
from placement_ac.core.api.text import joined
from placement_ac.core.inputs.rights import KueueRelease, VersionRange, is_on

GATE: Final = "ManagedJobsNamespaceSelectorAlwaysRespected"
RESPECTED: Final = VersionRange("0.15")
FIELD: Final = "managedJobsNamespaceSelector"


def selects_namespaces(kueue: HubKueue) -> bool:
    """Whether the hub's Kueue has a selector of its own."""
    return get_value(kueue.config, FIELD) is not None


def unmanaged(
    config: Obj, gates: Mapping[str, bool], release: KueueRelease | None, namespaces: Mapping[str, Object]
) -> tuple[str, ...]:
    """Return those of these namespaces, by name, whose jobs a Kueue of this configuration leaves alone.

    Without a selector none is returned: the default one leaves out Kueue's own namespace and kube-system.
    """
    if get_value(config, FIELD) is None or not is_on(GATE, RESPECTED, gates, release):
        return ()
    try:
        selector = read_label_selector(get_dict(config, FIELD))
    except SelectorError:
        return ()  # Kueue does not start with it
    labels = {name: {NAME_LABEL: name, **labels_of(raw)} for name, raw in namespaces.items()}
    return tuple(name for name in sorted(labels) if first_unmet(selector, labels[name]) is not None)


def label_namespaces(kubectl: Kubectl, config: Obj, names: Iterable[str]) -> str:
    """Return the command that makes namespaces match the selector, as far as labels alone do that."""
    texts = get_dict(config, FIELD, "matchLabels")
    labels = [f"{key}={value}" for key, value in texts.items()]
    if not labels or get_value(config, FIELD, "matchExpressions"):
        return f"{kubectl.run('edit', 'namespaces', *names)}  # {for_comment(f'labels for {FIELD}')}"
    return kubectl.run("label", "namespaces", *names, *labels)


def _unknown(setup: HubSetup) -> tuple[Finding, ...]:
    """Say that namespaces are unknown only where Kueue has a selector for them."""
    return setup.unknown(NAMESPACE, LOCAL_QUEUE) if selects_namespaces(setup.kueue) else ()


@hub_rule(
    "managed-namespaces",
    f"Kueue's `{FIELD}` has the namespaces of the LocalQueues that lead to our checks",
    "kubectl label namespaces NAME KEY=VALUE",
    unknown=_unknown,
)
def managed_namespaces(setup: HubSetup) -> Iterator[Finding]:
    kueue = setup.kueue
    queues = (queue for check in check_statuses(setup.view) for queue in check.queues)
    names = {label.partition("/")[0] for queue in queues for label in queue.local_queues or ()}
    there = {name: raw for raw in setup.dump.of(NAMESPACE) if (name := name_of(raw)) in names}
    if left := unmanaged(kueue.config, kueue.gates, kueue.release, there):
        yield fail(
            f"Kueue leaves jobs of namespace {joined(left)} alone, as its {FIELD} selects others: they run on"
            " the hub itself, beside all quota",
            label_namespaces(HUB, kueue.config, left),
        )
    yield ok("Kueue manages the jobs of all namespaces that have a LocalQueue for our checks")


RULES: Final = (managed_namespaces,)
