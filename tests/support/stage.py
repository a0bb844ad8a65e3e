"""Helpers for tests on a hub beside `tests/conftest.py`: a stage for jobs."""

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, redirect_stderr

import pytest

from placement_ac.observability import logs
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Play, Stage, open_stage, said_in_public, secrets_of

KUEUE_IS_FAST = {"QUIET_SECONDS": 0.6, "MIN_READY_SECONDS": 1.0, "GATE_REOPEN_SECONDS": 0.3}
"""The controller's wait for Kueue, whose times pass 10 times as fast here: it records after 0.1 s."""


@pytest.fixture
def play(admin: Driver, controllers: Controllers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """Starts stages: names of the workers, names of held workers, and options of Kueue's stand-in.

    The fixture fails the test if a secret appears in a debug log line or in public on the hub.
    """
    shorten(monkeypatch, **KUEUE_IS_FAST)
    log = io.StringIO()
    with redirect_stderr(log):
        logs.configure("text", "debug")
    stages: list[Stage] = []
    with ExitStack() as opened:

        def start(*names: str, **options: object) -> Stage:
            stages.append(opened.enter_context(open_stage(admin, controllers, names, **options)))
            return stages[0]

        yield start
        output = log.getvalue()
        print(output)  # noqa: T201  # pytest shows it when a test fails
        assert [secret for one in stages for secret in secrets_of(one) if secret in output] == []
        public = said_in_public(admin)
        assert [secret for one in stages for secret in secrets_of(one) if secret in public] == []
    logs.configure("text", "error")


@pytest.fixture
def ask_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry a worker that did not answer soon."""
    shorten(monkeypatch, COPIES_RETRY_SECONDS=0.5)


def shorten(monkeypatch: pytest.MonkeyPatch, **constants: float) -> None:
    """Set a wait to that many seconds, in every module that uses it."""
    for name, seconds in constants.items():
        ours = [
            module
            for path, module in sys.modules.items()
            if path.startswith(("placement_ac.", "kubectl_placement.", "placement_lab."))
        ]
        found = [module for module in ours if hasattr(module, name)]
        assert found, f"no module of placement_ac has {name}"
        for module in found:
            monkeypatch.setattr(module, name, seconds)
