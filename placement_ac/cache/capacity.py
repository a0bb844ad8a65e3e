"""
Collect the inputs of the CapacityProviders that follow a Placement.

No I/O, no clock.
"""

from collections.abc import Iterable

from placement_ac.cache.tables import Tables
from placement_ac.core.api.constants import SETUP_NAME
from placement_ac.core.api.fields import get_list, get_str, get_strs
from placement_ac.core.api.objects import CapacityProvider, Check
from placement_ac.core.inputs.capacity import CapacityInputs
from placement_ac.core.worker_setup.queues_there import written_queues


def capacity_inputs(
    tables: Tables, placement: str, checks: Iterable[Check], clusters: Iterable[str]
) -> CapacityInputs:
    """Return what the CapacityProviders of a Placement depend on; `clusters` are those that may count."""
    providers = tables.capacity_providers.by("placement", placement)
    names = {
        name for check in checks for _, name in tables.cluster_queues.index("check").ids(check.meta.name)
    }
    covered: dict[str, set[str]] = {}
    for name in names:
        for group in get_list(tables.cluster_queues.objects["", name].spec, "resourceGroups"):
            for flavor in get_list(group, "flavors"):
                covered.setdefault(get_str(flavor, "name"), set()).update(get_strs(group, "coveredResources"))
    queues = {name: tables.local_queues.index("cluster_queue").ids(name) for name in sorted(names)}
    works = {cluster: tables.works.get((cluster, SETUP_NAME)) for cluster in clusters}
    return CapacityInputs(
        providers=tuple(providers),
        queues={name: frozenset(ids) for name, ids in queues.items() if ids},
        covered={flavor: frozenset(resources) for flavor, resources in covered.items()},
        written={cluster: written_queues(work) for cluster, work in works.items() if work and work.ours},
    )


def misconfigured_provider(provider: CapacityProvider | None) -> CapacityInputs:
    """Return the inputs of a CapacityProvider of ours that names no Placement."""
    names_none = provider is not None and provider.ours and not provider.placement
    return CapacityInputs(providers=(provider,) if provider and names_none else ())
