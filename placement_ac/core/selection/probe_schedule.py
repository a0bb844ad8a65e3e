"""
Decide when a cluster is probed, and whether its result keeps it from being listed. Pure.

A listed cluster stays whatever its result is, as jobs may run there; the condition reports the
problems. A cluster that is not listed yet waits for its result, and delays no other.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from placement_ac.core.api.text import joined
from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.state import ProbeRequest, ProbeResult, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

GOOD_SECONDS: Final = 600.0
"""How often a cluster without problems or warnings is probed."""
BAD_SECONDS: Final = 30.0
"""How often a cluster with problems or warnings is probed."""


def probe_objection(snapshot: Snapshot, cluster: str, source: CredentialSource) -> Unusable | None:
    """Return why a cluster may not be listed yet; None if it may."""
    result = _result(snapshot, cluster, source)
    if result is None:
        return Unusable("it is being asked whether it is fit to be a worker")
    return Unusable(joined(result.fitness.problems, "; ")) if result.fitness.problems else None


def probe_remarks(snapshot: Snapshot, listed: Iterable[str]) -> Mapping[str, str]:
    """Return the problems and warnings of listed clusters: cluster → message."""
    messages: dict[str, str] = {}
    for cluster in listed:
        source = snapshot.credentials.selected.get(cluster)
        result = _result(snapshot, cluster, source) if isinstance(source, CredentialSource) else None
        remarks = (*result.fitness.problems, *result.fitness.warnings) if result else ()
        if remarks:
            messages[cluster] = joined(remarks, "; ")
    return messages


def due_probes(snapshot: Snapshot) -> tuple[tuple[ProbeRequest, ...], float | None]:
    """Return the probes that are due now, and the seconds until the next one is."""
    due, waits = [], []
    for cluster, source in snapshot.credentials.selected.items():
        if not isinstance(source, CredentialSource):
            continue
        result = _result(snapshot, cluster, source)
        left = valid_for(result.fitness) - result.age if result and result.version == source.version else 0.0
        if left > 0:
            waits.append(left)
        else:
            due.append(ProbeRequest(cluster, source))
    return tuple(due), min(waits, default=None)


def valid_for(fitness: Fitness) -> float:
    """Return for how many seconds the result of a probe counts."""
    return BAD_SECONDS if fitness.problems or fitness.warnings else GOOD_SECONDS


def _result(snapshot: Snapshot, cluster: str, source: CredentialSource) -> ProbeResult | None:
    """Return the cluster's last result, if the same credentials gave it."""
    result = snapshot.fleet.probe_results.get(cluster)
    return result if result and result.source == source else None
