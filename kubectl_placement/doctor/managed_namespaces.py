"""The rule for namespaces whose jobs the hub's Kueue leaves alone. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, Kubectl, for_comment
from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.managed_namespaces import FIELD, labels_wanted, selects_namespaces, unmanaged
from kubectl_placement.status.check_status import check_statuses
from placement_ac.core.api.constants import LOCAL_QUEUE, NAMESPACE
from placement_ac.core.api.fields import Obj, name_of
from placement_ac.core.api.text import joined


def label_namespaces(kubectl: Kubectl, config: Obj, names: Iterable[str]) -> str:
    """Return the command that makes namespaces match the selector, as far as labels alone do that."""
    labels = labels_wanted(config)
    if not labels:
        return f"{kubectl.run('edit', 'namespaces', *names)}  # {for_comment(f'labels for {FIELD}')}"
    return kubectl.run("label", "namespaces", *names, *labels)


def _unknown(setup: HubSetup) -> tuple[Finding, ...]:
    """Say that namespaces are unknown only where Kueue has a selector for them."""
    return setup.unknown(NAMESPACE, LOCAL_QUEUE) if selects_namespaces(setup.kueue.config) else ()


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
            f"Kueue leaves jobs of namespace {joined(left)} alone, as its {FIELD} selects others: they"
            " stay suspended for ever, or run on the hub itself, beside all quota",
            label_namespaces(HUB, kueue.config, left),
        )
    yield ok("Kueue manages the jobs of all namespaces that have a LocalQueue for our checks")


RULES: Final = (managed_namespaces,)
