"""A day of workers that begin bare: an eventful hour, and that each fault of the set-up is found."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from placement_ac.controller import reconcile
from placement_ac.core.inputs.worker_setup import WorkerSetupInputs
from placement_ac.core.worker_setup import manifests, planning
from placement_ac.core.worker_setup.planning import SetupPlan, plan_worker_setup
from placement_lab.standins.multikueue.objects import deep_copy
from tests.day.day import found_with, play_day
from tests.day.trace import HOUR, SETUP_TROUBLES, Item, Job, Trouble
from tests.day.world import BARE

MINUTE: Final = 60.0
HERE: Final = "a100-eu-1"


def job(number: int, at: float, gpus: int = 8, lasts: float = 40.0) -> Job:
    """A job of Placement research; `at` and `lasts` in minutes."""
    return Job(at * MINUTE, f"j{number}", "research", "research", gpus, lasts * MINUTE)


def trouble(at: float, what: str, whom: str = HERE, lasts: float = 0.0, value: int = 0) -> Trouble:
    """`at` and `lasts` in minutes."""
    return Trouble(at * MINUTE, what, whom, lasts * MINUTE, value)


FULL: Final = tuple(job(n, 1 + n / 60) for n in range(10))
"""Jobs that fill the five clusters of the Placement."""
EVENTFUL: Final = (
    *(job(n, 1 + 4 * n, 2, 9) for n in range(20)),
    trouble(3, "shrink", lasts=2),
    trouble(6, "by_hand", value=20),
    trouble(7, "by_hand", "a100-eu-2", value=5),
    trouble(8, "queue", "extra-0", 20),
    trouble(9, "queue", "extra-1", 9, value=5),
    trouble(10, "queue", "extra-2", 15),
    trouble(11, "agent", "a100-us-1", 6),
    trouble(12, "own", "a100-eu-3", 30, value=15),
    trouble(13, "own", "a100-eu-2", 12, value=0),
    trouble(14, "shrink", "a100-eu-2", 12),
    trouble(16, "taint", "a100-us-2", 30),
    trouble(20, "detach", "a100-eu-3", 5),
    trouble(24, "by_hand", "a100-us-1", 8),
    trouble(30, "template", "all", 20, value=5),
    trouble(35, "shrink", "a100-us-1", 15),
    trouble(38, "crash", "leader", 0.2, value=2),
    trouble(45, "away", "a100-eu-1", 8),
)
"""Each trouble once, and jobs all the time."""


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.long) for n in range(2, 6))])
def test_an_eventful_time(seed: int) -> None:
    assert set(SETUP_TROUBLES) <= {one.what for one in EVENTFUL if isinstance(one, Trouble)}
    played = play_day(BARE, seed, EVENTFUL, 1.5 * HOUR)
    assert not played.finding
    assert all(played.world.kueue.starts[one.name] for one in EVENTFUL if isinstance(one, Job))


# -- each fault is found


def changed(change: Callable[[Any], None]) -> Callable[[WorkerSetupInputs], SetupPlan]:
    """The plan, with another spec in each write."""

    def plan(inputs: WorkerSetupInputs) -> SetupPlan:
        wanted = plan_worker_setup(inputs)
        phases = tuple(tuple(_with_spec(action, change) for action in phase) for phase in wanted.phases)
        return replace(wanted, phases=phases)

    return plan


def _with_spec(action: Any, change: Callable[[Any], None]) -> Any:
    if not hasattr(action, "body"):
        return action
    body = deep_copy(action.body)
    change(body["spec"])
    return replace(action, body=body)


def by_force(spec: Any) -> None:
    for config in spec["manifestConfigs"]:
        config["updateStrategy"].get("serverSideApply", {})["force"] = True


def only_here(inputs: WorkerSetupInputs) -> SetupPlan:
    """Set up one cluster alone."""
    return plan_worker_setup(inputs) if inputs.cluster == HERE else SetupPlan()


def nothing_stays(*_: Any, **__: Any) -> bool:
    return False


PLAN: Final = (reconcile, "plan_worker_setup")
LEAVES: Final = (job(0, 1, 1, 5), trouble(10, "taint", lasts=180))
"""A cluster is deselected, and its ManifestWork goes after the retention."""


@pytest.mark.parametrize(
    ("items", "where", "fault", "rule"),
    [
        pytest.param(
            (trouble(5, "by_hand", value=20), trouble(10, "queue", "extra-0", 20)),
            *(PLAN, changed(by_force), "others"),
            id="an object of somebody else is taken over",
        ),
        pytest.param(
            (trouble(5, "by_hand", value=5), trouble(10, "queue", "extra-1", 20)),
            *((manifests, "_stays"), nothing_stays, "others"),
            id="an object that was there before is deleted",
        ),
        pytest.param(
            *(LEAVES, (manifests, "_stays"), nothing_stays, "kept"),
            id="what is to stay goes with its ManifestWork",
        ),
        pytest.param(
            (trouble(5, "own", lasts=170), *LEAVES),
            *((manifests, "_holds_jobs"), lambda _: False, "kept"),
            id="a LocalQueue with jobs is deleted",
        ),
        pytest.param(
            (*FULL, trouble(10, "shrink", lasts=60)),
            *((manifests, "_with_used_quota"), lambda manifest, *_: manifest, "in-use"),
            id="quota falls below its use",
        ),
        pytest.param(
            tuple(trouble(10 + 4 * n, "shrink", lasts=1) for n in range(6)),
            *((planning, "QUOTA_FOLLOWS_SECONDS"), 0.0, "flapping"),
            id="quota follows every dip",
        ),
        pytest.param(
            (trouble(10, "shrink", lasts=60),),
            *((planning, "QUOTA_FOLLOWS_SECONDS"), 3000.0, "quota"),
            id="quota does not follow",
        ),
        pytest.param(FULL[:4], PLAN, only_here, "waits", id="a cluster is not set up"),
    ],
)
def test_a_fault_of_the_set_up_is_found(
    items: tuple[Item, ...],
    where: tuple[Any, str],
    fault: Any,
    rule: str,
) -> None:
    def put(patched: pytest.MonkeyPatch) -> None:
        patched.setattr(*where, fault)

    assert found_with(put, BARE, items, 2 * HOUR, [rule]).rule == rule
