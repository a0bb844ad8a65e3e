"""
When a cluster is asked whether it is fit, and what its answer comes to. Pure.

A cluster that is listed stays, whatever it says: jobs may run there. It is told of. One that is not
listed yet waits for the answer, and keeps nobody else waiting.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from placement_ac.core.api.text import joined
from placement_ac.core.inputs.state import ProbeRequest, ProbeResult, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

GOOD_SECONDS: Final = 600.0
"""How often a cluster is asked that is fit and lacks nothing."""
BAD_SECONDS: Final = 30.0
"""How often one is asked that is not, or lacks something."""


def probe_objection(seen: Snapshot, cluster: str, source: CredentialSource) -> Unusable | None:
    """Return why a cluster may not be listed anew; None when it may."""
    if not seen.policy.probe:
        return None
    fit = _answer(seen, cluster, source)
    if fit is None:
        return Unusable("it is being asked whether it is fit to be a worker")
    return Unusable(joined(fit.fitness.problems, "; ")) if fit.fitness.problems else None


def probe_remarks(seen: Snapshot, listed: Iterable[str]) -> Mapping[str, str]:
    """Return what is to be told of clusters that are listed: cluster → words."""
    found: dict[str, str] = {}
    for cluster in listed if seen.fleet.probe_results else ():
        source = seen.credentials.selected.get(cluster)
        fit = _answer(seen, cluster, source) if isinstance(source, CredentialSource) else None
        told = (*fit.fitness.problems, *fit.fitness.warnings) if fit else ()
        if told:
            found[cluster] = joined(told, "; ")
    return found


def due_probes(seen: Snapshot) -> tuple[tuple[ProbeRequest, ...], float | None]:
    """Return who is to be asked now, and the seconds until the next one is due."""
    if not seen.policy.probe:
        return (), None
    due, waits = [], []
    for cluster, source in seen.credentials.selected.items():
        if not isinstance(source, CredentialSource):
            continue
        fit = _answer(seen, cluster, source)
        left = _believed(fit) - fit.age if fit and fit.version == source.version else 0.0
        if left > 0:
            waits.append(left)
        else:
            due.append(ProbeRequest(cluster, source))
    return tuple(due), min(waits, default=None)


def _believed(fit: ProbeResult) -> float:
    return BAD_SECONDS if fit.fitness.problems or fit.fitness.warnings else GOOD_SECONDS


def _answer(seen: Snapshot, cluster: str, source: CredentialSource) -> ProbeResult | None:
    """Return what the cluster said, if it was entered by the same way."""
    fit = seen.fleet.probe_results.get(cluster)
    return fit if fit and fit.source == source else None
