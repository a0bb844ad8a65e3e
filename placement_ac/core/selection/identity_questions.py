"""
Decide which workers are asked for what tells one from another, and which clusters wait for the answer.

Pure. Each kubeconfig is asked once, before its cluster is listed. Where an account sees neither Namespace
kube-system nor ClusterQueues, copies of Workloads must tell: then a cluster that comes is asked again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from math import inf
from typing import Final, NamedTuple

from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.state import NOTHING, Since, SinceKind, Snapshot
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.selection.aliases import identity_of
from placement_ac.core.selection.selection import soonest

WAIT_SECONDS: Final = 10.0
"""How long a cluster waits at most for the answers (Kueue connects to it as slowly as we do)."""
TOGETHER_SECONDS: Final = 2.0
"""How long those that have answered wait for the others: each change of the list costs Kueue time."""
COPIES_SECONDS: Final = 10.0
"""How old the answer of a cluster that comes may be, if only copies tell which worker it is."""
UNANSWERED_SECONDS: Final = 60.0
"""How often a worker is asked that could not be asked."""
EVICTED_SECONDS: Final = 60.0
"""How long after an eviction workers are asked again that nothing has told apart: a job that starts on one
worker by two names is evicted again and again."""
AGAIN_SECONDS: Final = 5.0
"""How often."""
_WHY: Final = "it is being asked which worker it is"


class IdentityQuestions(NamedTuple):
    """The workers to ask, and the clusters that wait."""

    ask: tuple[CredentialSource, ...] = ()
    waiting: Mapping[str, str] = NOTHING
    """Clusters that are not to be listed yet → why."""
    lasting: frozenset[Since] = frozenset()
    requeue_after: float | None = None


def identity_questions(
    snapshot: Snapshot, listed: Iterable[str], new: Sequence[str], second: Iterable[str]
) -> IdentityQuestions:
    """Return whom to ask: of the `listed` clusters, `new` ones that are to be listed, and `second` names."""
    in_list = list(listed)
    if not snapshot.policy.identify or len({*in_list, *new}) < 2:
        return IdentityQuestions()
    ask: dict[CredentialSource, None] = {}
    waits: list[float] = []
    for cluster in dict.fromkeys((*in_list, *new, *second)):
        left = _seconds_until_asked(snapshot, identity_of(snapshot, cluster))
        if left <= 0:
            ask |= _credentials(snapshot, cluster)
        elif left < inf:
            waits.append(left)
    awaited = {cluster: _still_to_ask(snapshot, cluster, in_list) for cluster in new}
    since = {
        cluster: Since(SinceKind.IDENTITY_AWAITED, cluster) for cluster, asked in awaited.items() if asked
    }
    left_by_cluster = {cluster: WAIT_SECONDS - snapshot.age(one) for cluster, one in since.items()}
    waiting = {cluster: left for cluster, left in left_by_cluster.items() if left > 0}
    for cluster in waiting:
        for other in awaited[cluster]:
            ask |= _credentials(snapshot, other)
    together = TOGETHER_SECONDS - max([snapshot.age(since[cluster]) for cluster in waiting], default=inf)
    if together > 0:
        waiting |= dict.fromkeys(new, together)
    for cluster, age in _to_ask_again(snapshot, in_list):
        if age >= AGAIN_SECONDS:
            ask |= _credentials(snapshot, cluster)
        else:
            waits.append(AGAIN_SECONDS - age)
    return IdentityQuestions(
        tuple(ask),
        dict.fromkeys(waiting, _WHY),
        frozenset(since.values()),
        soonest((*waits, *waiting.values())),
    )


def _credentials(snapshot: Snapshot, cluster: str) -> dict[CredentialSource, None]:
    source = snapshot.credentials.usable(cluster)
    return {source: None} if source else {}


def _age(snapshot: Snapshot, known: WorkerIdentity) -> float:
    return (snapshot.now - known.asked_at).total_seconds()


def _seconds_until_asked(snapshot: Snapshot, known: WorkerIdentity | None) -> float:
    """Return in how many seconds a worker is due anyway: one that has answered is not asked again."""
    if known is None:
        return 0.0
    return UNANSWERED_SECONDS - _age(snapshot, known) if known.problem else inf


def _still_to_ask(snapshot: Snapshot, cluster: str, listed: Iterable[str]) -> list[str]:
    """Return which clusters must answer before a new one is known to be no listed worker."""
    known = identity_of(snapshot, cluster)
    if known is None:
        return [cluster] if snapshot.credentials.usable(cluster) else []
    if known.problem:
        return []
    asked: list[str] = []
    for other in listed:
        there = identity_of(snapshot, other)
        if there is None:
            asked += [other] if snapshot.credentials.usable(other) else []
        elif not there.problem and not known.is_comparable(there):
            if known.queues and there.queues:  # the one that was asked first
                asked.append(other if there.asked_at < known.asked_at else cluster)
            elif _age(snapshot, known) > COPIES_SECONDS:
                asked.append(cluster)
            elif known.copies and there.asked_at < known.asked_at:
                asked.append(other)
    return asked


def _to_ask_again(snapshot: Snapshot, listed: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Yield the listed clusters that nothing has told apart, with the ages of their answers.

    Only while Kueue evicts jobs that nobody has sent back.
    """
    known = {cluster: there for cluster in listed if (there := identity_of(snapshot, cluster))}
    answered = {cluster: there for cluster, there in known.items() if not there.problem}
    if all(there.namespace for there in answered.values()):
        return
    pairs = combinations(answered, 2)
    alike = {cluster for pair in pairs if not _are_comparable(answered, *pair) for cluster in pair}
    since = snapshot.now - timedelta(seconds=EVICTED_SECONDS)
    if alike and any(
        job.evicted_at and job.evicted_at > since and not job.sent_back_from for job in snapshot.workloads
    ):
        yield from ((cluster, _age(snapshot, answered[cluster])) for cluster in alike)


def _are_comparable(answered: Mapping[str, WorkerIdentity], one: str, other: str) -> bool:
    return answered[one].is_comparable(answered[other])
