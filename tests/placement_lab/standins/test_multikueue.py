"""The engine of MultiKueue is pure."""

import ast
import copy
from pathlib import Path

import pytest

from placement_lab.standins import multikueue
from placement_lab.standins.multikueue import CONTROLLERS, ReconcileResult, RemoteWorker, decide
from placement_lab.standins.multikueue.objects import format_time
from tests.placement_lab.standins.workload_inputs import (
    ALL,
    MK,
    NOW,
    RUNS,
    WAITS,
    inputs_of,
    job,
    placed,
    reconcile,
    with_retry,
    workload,
)


def test_the_engine_imports_no_clock_io_or_framework() -> None:
    forbidden = {"aiohttp", "asyncio", "kopf", "kubernetes", "logging", "random", "structlog", "time"}
    modules = sorted(Path(multikueue.__file__).parent.glob("*.py"))
    assert len(modules) > 5
    for module in modules:
        nodes = list(ast.walk(ast.parse(module.read_text())))
        names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        assert not {name.partition(".")[0] for name in names} & forbidden, module.name


@pytest.mark.parametrize("controller", [*CONTROLLERS, "all of them"])
def test_deciding_does_not_change_the_inputs(controller: str) -> None:
    retried = workload({MK: "Pending", "placement": "Retry"}, nominated=ALL)
    for of in (workload(true=()), workload(), placed(), retried, workload(true=("QuotaReserved", "Evicted"))):
        at = inputs_of(of, {"worker1": WAITS, "worker2": RUNS}, job=job(suspend=False))
        before = copy.deepcopy(at)
        decide(at) if controller == "all of them" else reconcile(controller, at)
        assert at == before


def test_decide_returns_the_earliest_requeue() -> None:
    waits = with_retry(5)
    waits["status"]["requeueState"] = {"requeueAt": format_time(NOW + 5)}
    gone = RemoteWorker(connected=False, lost_since=NOW - 899)
    assert decide(inputs_of(waits, {"worker2": gone}, job=job(suspend=False))) == ReconcileResult(
        requeue_after=1.0
    )
