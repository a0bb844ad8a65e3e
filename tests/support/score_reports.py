"""Clusters whose scores are reported, in virtual time: what the controller would write, without a hub."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from placement_ac.core.api import decode
from placement_ac.core.inputs.score_reports import ScoreChoice, ScoreInputs, ScorePolicy
from placement_ac.core.kubeconfig.source import CredentialSource
from placement_ac.core.plan.diff import Apply, SetStatus
from placement_ac.core.score_reports.history import ScoreHistory
from placement_ac.core.score_reports.planning import ScorePlan, counting, plan_scores
from tests.support.builders import NOW

Raw = dict[str, Any]
GPU = "nvidia.com/gpu"
POLICY = ScorePolicy(enabled=True, gpus=(GPU,))
OWNERS = {"uid": "check"}


def inputs(cluster: str = "a", now: datetime = NOW, observed: Raw | None = None, **rest: Any) -> ScoreInputs:
    """The inputs of a cluster that a check of ours uses, and whose worker can be read."""
    given = {"policy": POLICY, "owners": OWNERS, "credentials": CredentialSource("Secret", cluster)} | rest
    scores = decode.scores(observed) if observed else None
    return ScoreInputs(cluster=cluster, now=now, observed=scores, **given)


def write(plan: ScorePlan, before: Raw | None) -> Raw | None:
    """Return the AddOnPlacementScore after the writes of a plan, as an API server would have it."""
    after = before
    for action in (action for phase in plan.phases for action in phase):
        if isinstance(action, Apply):
            managed = {"manager": "placement-ac", "operation": "Apply", "fieldsV1": {"f:metadata": {}}}
            metadata = {"uid": "uid", "resourceVersion": "1", "managedFields": [managed]}
            after = {**(after or {}), "metadata": metadata | action.body["metadata"]}
        elif isinstance(action, SetStatus):
            assert after is not None
            after = after | {"status": action.status}
    return after


@dataclass
class VirtualScores:
    """The scores of some clusters, one Placement that chooses by one of them, and every write.

    `selected` is what OCM has decided.
    """

    policy: ScorePolicy = POLICY
    now: datetime = NOW
    selected: tuple[str, ...] = ()
    score: str = "gpuFree"
    objects: dict[str, Raw] = field(default_factory=dict)
    writes: list[tuple[datetime, str, Mapping[str, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.history = ScoreHistory(self.policy.hold)

    def restart(self) -> None:
        """Lose what is in memory."""
        self.history.clear()

    def read(self, cluster: str, **values: int) -> None:
        """Take in a reading, and carry out what is planned until there is nothing to do."""
        self.history.add(cluster, (self.now - NOW).total_seconds(), values)
        self.look(cluster)

    def fail(self, cluster: str) -> None:
        """Take in that a worker cannot be read."""
        self.history.forget(cluster)
        self.look(cluster)

    def look(self, cluster: str) -> None:
        for _ in range(3):
            before = self.objects.get(cluster)
            plan = plan_scores(
                inputs(cluster, self.now, before, policy=self.policy), self.history, self._score_choices
            )
            after = write(plan, before)
            if after is None or after == before:
                return
            self.objects[cluster] = after
            if after.get("status") != (before or {}).get("status"):
                self.writes.append((self.now, cluster, self.values(cluster)))
        raise AssertionError(f"{cluster} is written again and again")

    def values(self, cluster: str) -> Mapping[str, int]:
        """Return the values that count now."""
        obj = self.objects.get(cluster)
        return counting(decode.scores(obj), self.now) if obj else {}

    def value(self, cluster: str) -> int | None:
        return self.values(cluster).get(self.score)

    def wait(self, seconds: float, each: Callable[[], None] | None = None) -> None:
        """Let time pass; `each` is called at every reading."""
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            self.now += timedelta(seconds=self.policy.reading)
            if each:
                each()

    def _score_choices(self) -> list[ScoreChoice]:
        known = {name: value for name in self.objects if (value := self.value(name)) is not None}
        selected = {name: value for name, value in known.items() if name in self.selected}
        return [ScoreChoice(self.score, selected, {n: v for n, v in known.items() if n not in selected})]


def with_policy(**changes: Any) -> ScorePolicy:
    return replace(POLICY, **changes)
