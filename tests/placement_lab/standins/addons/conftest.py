"""A hub and a worker with the stand-in for OCM's add-ons."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from placement_ac.kube.client import Object
from placement_lab.standins.fleet import WorkerFleet
from placement_lab.standins.runner import StandIns
from tests.placement_lab.standins.addons.environment import AddonEnvironment, Staged, W
from tests.support.admin import login_to
from tests.support.real_hub import HubMaker


@pytest.fixture
def staged(a_hub: HubMaker) -> Staged:
    """Starts a stage with CRDs of the hub and options of the stand-in; no cluster has joined yet."""

    @contextmanager
    def start(crds: list[Object] | None = None, **options: Any) -> Iterator[AddonEnvironment]:
        with (
            a_hub(crds=crds) as hub,
            WorkerFleet([W], shortest_token_seconds=1) as fleet,
            AddonEnvironment(hub, fleet) as stage,
            StandIns(lambda: login_to(hub), [lambda login: stage.make(login, **options)]),
        ):
            yield stage

    return start


@pytest.fixture
def stage(staged: Staged) -> Iterator[AddonEnvironment]:
    with staged() as stage:
        stage.join()
        yield stage
