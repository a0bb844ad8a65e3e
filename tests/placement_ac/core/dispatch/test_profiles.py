"""Profiles by name and by weights."""

import pytest

from placement_ac.core.dispatch.profiles import PROFILES, ProfileError, parse_profile


@pytest.mark.parametrize("name", list(PROFILES))
def test_by_name(name: str) -> None:
    assert parse_profile(name) == (name, tuple(PROFILES[name].items()))


def test_by_weights() -> None:
    assert parse_profile("Spread=2, Placement = 1,Waiting=0").weights == (("Spread", 2), ("Placement", 1))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "best",
            "'best' is no profile: use one of ranked, spread, pack, headroom, or NAME=WEIGHT,…",
            id="name",
        ),
        pytest.param("ranked,Capacity", "leave out Capacity: a filter always counts", id="filter"),
        pytest.param(
            "Placment=1", "there is no score 'Placment': there are Placement, Spread, Pack", id="score"
        ),
        pytest.param("Spread=x", "the weight of Spread must be a number of 0 to 100, not 'x'", id="weight"),
        pytest.param(
            "Spread=101", "the weight of Spread must be a number of 0 to 100, not '101'", id="too much"
        ),
        pytest.param("Spread=" + "9" * 5000, "the weight of Spread must be a number of 0 to 100", id="huge"),
        pytest.param("Placement=5,ranked", "'Placement=5,ranked' gives Placement a weight twice", id="twice"),
        pytest.param("Spread=0", "'Spread=0' gives no score a weight", id="nothing counts"),
    ],
)
def test_text_that_is_no_profile_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ProfileError) as error:
        parse_profile(text)
    assert str(error.value).startswith(problem)
