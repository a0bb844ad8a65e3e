"""The demo on hubs with the published CRDs: its writes are valid by these, too."""

import functools

import pytest
from click.testing import CliRunner, Result

from placement_lab.cli.demo import command
from placement_lab.demo.stories import scenario
from placement_lab.hub import Hub
from tests.placement_lab.demo.test_credentials import PROVISIONED
from tests.placement_lab.demo.test_demo import documents
from tests.published.shared import published_crds

pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _published(monkeypatch: pytest.MonkeyPatch) -> None:
    published = functools.partial(Hub, crds=published_crds())
    monkeypatch.setattr("placement_lab.demo.environment.Hub", published)
    monkeypatch.setattr("placement_lab.standins.fleet.Hub", published)


def played(*words: str) -> Result:
    run: Result = CliRunner().invoke(command, [*words, "-o", "json"])
    assert run.exit_code == 0, run.output
    return run


def test_all_steps_succeed() -> None:
    run = played("--removal-policy", "Immediate")
    assert [doc["ok"] for doc in documents(run.stdout)] == [True] * 22


def test_all_steps_with_provisioned_credentials_succeed() -> None:
    run = played(*PROVISIONED, "--story", "2")
    assert [doc["ok"] for doc in documents(run.stdout)] == [True] * len(scenario(2, provisioned=True).steps)
