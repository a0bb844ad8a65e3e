"""A hub with workers and the stand-in for Kueue, which handles Workloads."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from placement_ac.kube.login import Login
from placement_lab.hub import Hub
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.kueue_manager import Kueue
from placement_lab.standins.kueue_webhooks import JOB_WEBHOOK
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.workload_environment import SPEED, Staged, WorkloadEnvironment
from tests.support.admin import login_to
from tests.support.real_hub import HubMaker


@pytest.fixture
def staged(a_hub: HubMaker) -> Iterator[Staged]:
    """Starts a hub, workers and Kueue with the given options."""
    with ExitStack() as opened:

        def start(
            workers: int = 3, held: Any = (), pods: bool = True, ready: bool = True, **options: Any
        ) -> WorkloadEnvironment:
            names = [f"worker{index + 1}" for index in range(workers)]
            hub = opened.enter_context(a_hub())
            if isinstance(hub, Hub):  # an API server in another process has no webhook
                hub.add_webhook(JOB_WEBHOOK)
            fleet = opened.enter_context(WorkerFleet(names, held=held, pods=pods))
            kueues: list[Kueue] = []

            def make(login: Login) -> Kueue:
                kueues.append(Kueue(login, speed=SPEED, **options))
                return kueues[0]

            opened.enter_context(StandIns(lambda: login_to(hub), [make]))
            stage = opened.enter_context(WorkloadEnvironment(login_to(hub), fleet, lambda: kueues[0]))
            stage.set_up(ready=ready)
            return stage

        yield start
