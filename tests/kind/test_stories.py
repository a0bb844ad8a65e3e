"""The three stories on the real clusters of `setup-env.sh` (`make test-kind`)."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.kind.environment import Environment
from tests.kind.stories import for_real, play

SECONDS = 240.0
"""For a step: an image may have to be pulled, and Kueue tries again after up to 40 s."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("kind"))
    environment.pause_addon()
    return environment


@pytest.fixture
def cleared(environment: Environment) -> Iterator[Environment]:
    environment.clear()
    yield environment
    environment.clear()


@pytest.mark.parametrize("story", [1, 2, 3])
def test_story(cleared: Environment, story: int) -> None:
    adapted = for_real(story)
    assert asyncio.run(play(adapted, cleared.hub, cleared.workers, cleared, SECONDS)) == []
