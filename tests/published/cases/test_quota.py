"""Case 15: the quota of workers, as Kueue counts it."""

import pytest

from tests.published.cases.scripts import run_case, section

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]
FIRST = "goes to {}, best first (queue q"


@pytest.fixture(scope="module")
def plans() -> str:
    return run_case("15")


@pytest.fixture(scope="module")
def controller() -> str:
    return run_case("15", "run2.sh")


@pytest.mark.parametrize(
    ("part", "answer"),
    [
        pytest.param("3", "had too little quota: 20 pods asked, 10 at most (Capacity)", id="a quota of pods"),
        pytest.param("4", FIRST.format("w2, w1"), id="a LocalQueue on hold"),
        pytest.param("5", FIRST.format("w2, w1"), id="a ClusterQueue on hold"),
    ],
)
def test_plan_counts_what_kueue_counts(plans: str, part: str, answer: str) -> None:
    assert answer in section(plans, f"{part}.")


@pytest.mark.parametrize(
    ("part", "nominated"),
    [
        pytest.param("7", 'nominated: ["gpu-w1","gpu-w2"]', id="Kueue ignores what is not declared"),
        pytest.param("8", "nominated:  \n", id="a quota of pods"),
        pytest.param("9", 'nominated: ["gpu-w2","gpu-w1"]', id="a LocalQueue on hold"),
    ],
)
def test_the_controller_counts_what_kueue_counts(controller: str, part: str, nominated: str) -> None:
    assert nominated in f"{section(controller, f'{part}.')}\n"
