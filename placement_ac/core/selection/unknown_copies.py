"""
Keep a worker out whose running jobs Kueue would delete, and report such jobs on listed workers.

Pure. As soon as there is a MultiKueueCluster, Kueue deletes the copies of its origin that the hub does not
have, with their jobs: so the worker is asked before. One that cannot be asked is listed, as it is without
this question: the controller may have no access where Kueue has. Nothing is taken away from a list: there
Kueue has deleted them already.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from placement_ac.core.api.constants import ANNOTATION_DELETE_UNKNOWN
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.inputs.unknown_copies import UnknownCopies
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

FRESH_SECONDS: Final = 30.0
"""How old the answer of a cluster may be that is to be listed; how often one is asked that is left out."""
TOGETHER_SECONDS: Final = 2.0
"""How long those that have answered wait for the others: each change of the list costs Kueue time."""
LISTED_SECONDS: Final = 600.0
"""How often a listed cluster is asked."""
AGAIN_SECONDS: Final = 90.0
"""How soon again one that has such copies: what another hub does not send again is gone then."""
UNLISTED_SECONDS: Final = 3600.0
"""How long a cluster may come back that this controller has unlisted: what is there may be its own."""
_WHY: Final = "it is being asked for running jobs of another hub"
FIX: Final = "set another multiKueue.origin in the configuration of Kueue on each hub"


class UnknownCopiesQuestions(NamedTuple):
    """The workers to ask, and the clusters that wait."""

    ask: tuple[CredentialSource, ...] = ()
    waiting: Mapping[str, str] = NOTHING
    """Clusters that are not to be listed yet → why."""
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def unknown_copies_objection(snapshot: Snapshot, cluster: str, source: CredentialSource) -> Unusable | None:
    """Return why a cluster that is not listed is left out; None: its worker has no such copies."""
    known = snapshot.fleet.unknown_copies.get(source)
    if known is None or not known.number or not _is_guarded(snapshot, cluster):
        return None
    return Unusable(
        f"{FIX}, or annotate ManagedCluster {cluster} with {ANNOTATION_DELETE_UNKNOWN}=true: its worker has "
        f"{known.text}, and Kueue would delete them with their jobs"
    )


def unknown_copies_remarks(snapshot: Snapshot, listed: Iterable[str]) -> Iterator[str]:
    """Yield what to do about listed clusters that had such copies twice, a minute apart."""
    for cluster in listed if snapshot.ages(SinceKind.UNKNOWN_COPIES) else ():
        known = _answer(snapshot, cluster)
        seen_for = snapshot.age(_seen(cluster)) - (_age(snapshot, known) if known else inf)
        if known and known.number and seen_for >= AGAIN_SECONDS / 2 and not _consents(snapshot, cluster):
            yield (
                f"{cluster}: {FIX}: its worker has {known.text}; Kueue deletes them with their jobs, and "
                "others come in their place"
            )


def unknown_copies_questions(
    snapshot: Snapshot, listed: Mapping[str, str], new: Sequence[str]
) -> UnknownCopiesQuestions:
    """Return whom to ask: of the `listed` clusters, of `new` ones that are to be listed, of those left out.

    `listed`: cluster → its MultiKueueCluster.
    """
    if not snapshot.policy.guards_copies:
        return UnknownCopiesQuestions()
    awaited = {cluster: source for cluster in new if (source := _source_to_ask(snapshot, cluster))}
    due, waits = dict.fromkeys(awaited.values()), list[float]()
    for source, seconds in (*_left_out(snapshot, listed), *_in_list(snapshot, listed)):
        left = _seconds_until_due(snapshot, source, seconds)
        if left <= 0:
            due[source] = None
        else:
            waits.append(left)
    since = [Since(SinceKind.COPIES_AWAITED, cluster) for cluster in awaited]
    together = TOGETHER_SECONDS - max(map(snapshot.age, since), default=inf)
    if together > 0:
        waits.append(together)
    return UnknownCopiesQuestions(
        tuple(due),
        dict.fromkeys(new if together > 0 else awaited, _WHY),
        frozenset((*since, *_seen_on(snapshot, listed), *_unlisted(snapshot, listed))),
        min(waits, default=None),
    )


def _source_to_ask(snapshot: Snapshot, cluster: str) -> CredentialSource | None:
    """Return the credentials with which to ask a cluster that is to be listed; None: it need not be asked."""
    source = snapshot.credentials.usable(cluster)
    if source is None or not _is_guarded(snapshot, cluster):
        return None
    return source if _seconds_until_due(snapshot, source, FRESH_SECONDS) <= 0 else None


def _left_out(snapshot: Snapshot, listed: Mapping[str, str]) -> Iterator[tuple[CredentialSource, float]]:
    for cluster, source in snapshot.credentials.selected.items():
        if cluster in listed or not isinstance(source, CredentialSource):
            continue
        if unknown_copies_objection(snapshot, cluster, source):
            yield source, FRESH_SECONDS


def _in_list(snapshot: Snapshot, listed: Mapping[str, str]) -> Iterator[tuple[CredentialSource, float]]:
    for cluster, name in listed.items():
        source, obj = snapshot.credentials.usable(cluster), snapshot.objects.clusters.get(name)
        if source and obj and obj.active is not False and not _consents(snapshot, cluster):
            known = snapshot.fleet.unknown_copies.get(source)
            yield source, AGAIN_SECONDS if known and known.number else LISTED_SECONDS


def _is_guarded(snapshot: Snapshot, cluster: str) -> bool:
    """Whether a cluster that is not listed is left out if its worker has such copies."""
    name = snapshot.hub.multikueue_cluster_name(snapshot.name, cluster)
    return not (
        name in snapshot.objects.clusters  # Kueue is connected, and has deleted them
        or _consents(snapshot, cluster)
        or snapshot.all_ages.get(Since(SinceKind.UNLISTED, cluster), inf) < UNLISTED_SECONDS
    )


def _consents(snapshot: Snapshot, cluster: str) -> bool:
    managed = snapshot.fleet.managed.get(cluster)
    return managed is not None and managed.deletes_unknown_copies


def _unlisted(snapshot: Snapshot, listed: Mapping[str, str]) -> Iterator[Since]:
    """Yield the clusters that this controller has unlisted in the last hour."""
    for since, age in snapshot.all_ages.items():
        if since.subject in listed:
            continue
        if since.kind is SinceKind.UNLISTED:
            if age < UNLISTED_SECONDS:
                yield since
        elif since.kind is SinceKind.BEING_UNLISTED:
            now = Since(SinceKind.UNLISTED, since.subject)
            if now not in snapshot.all_ages:  # it has just begun, or goes on from before
                yield now


def _seen_on(snapshot: Snapshot, listed: Iterable[str]) -> Iterator[Since]:
    """Yield the listed clusters that had such copies when they were asked last."""
    for cluster in listed:
        known = _answer(snapshot, cluster)
        if known and known.number:
            yield _seen(cluster)


def _seen(cluster: str) -> Since:
    return Since(SinceKind.UNKNOWN_COPIES, cluster)


def _answer(snapshot: Snapshot, cluster: str) -> UnknownCopies | None:
    source = snapshot.credentials.usable(cluster)
    return snapshot.fleet.unknown_copies.get(source) if source else None


def _age(snapshot: Snapshot, known: UnknownCopies) -> float:
    return (snapshot.now - known.asked_at).total_seconds()


def _seconds_until_due(snapshot: Snapshot, source: CredentialSource, seconds: float) -> float:
    known = snapshot.fleet.unknown_copies.get(source)
    if known is None or known.version != source.version:
        return 0.0
    return seconds - _age(snapshot, known)
