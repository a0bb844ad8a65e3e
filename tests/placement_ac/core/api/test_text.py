"""Texts for people: the names that somebody may have meant."""

import pytest

from placement_ac.core.api.text import did_you_mean


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        pytest.param("placement-demo-1", ["placement-demo1", "placement-demo2"], "placement-demo1", id="one"),
        pytest.param("demo", ["demo2", "demo1"], "demo1 or demo2", id="as close as each other"),
        pytest.param(
            "cluster9", [f"cluster{n}" for n in (2, 3, 1)], "cluster1, cluster2 or cluster3", id="three"
        ),
        pytest.param("cluster9", [f"cluster{n}" for n in range(1, 5)], "", id="more than three"),
        pytest.param("demo", ["demo"], "", id="itself"),
        pytest.param("demo", ["training"], "", id="none is close"),
        pytest.param("demo", [], "", id="there is none"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_closest(name: str, names: list[str], expected: str) -> None:
    assert did_you_mean(name, names) == (f"; did you mean {expected}?" if expected else "")
