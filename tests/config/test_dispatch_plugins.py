"""Installed plugins of the dispatcher: found by their entry point, and imported when a profile names them."""

import sys
from pathlib import Path

import pytest

from placement_ac.config.dispatch_plugins import installed_plugins
from placement_ac.config.load import load
from placement_ac.config.settings import BadSettings
from placement_ac.core.dispatch.profiles import ProfileError, parse_profile
from tests.support.jobs_to_dispatch import cluster, job
from tests.support.plugins import install, install_sample


def test_one_is_imported_when_a_profile_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "acme_dispatch", raising=False)
    install_sample(tmp_path, monkeypatch)
    found = installed_plugins()
    assert (sorted(found), "acme_dispatch" in sys.modules) == (["Cheap", "Licensed"], False)
    profile = parse_profile("ranked,Licensed,Cheap=5", found)
    assert (profile.filters, dict(profile.weights)["Cheap"], "acme_dispatch" in sys.modules) == (
        ("Licensed",),
        5,
        True,
    )


@pytest.mark.parametrize(
    ("labels", "there", "reason"),
    [
        ({}, {}, None),
        ({"acme.com/product": "solver"}, {}, "had no license for solver"),
        ({"acme.com/product": "solver"}, {"acme.com/license-solver": ""}, None),
    ],
)
def test_the_samples_filter(
    labels: dict[str, str],
    there: dict[str, str],
    reason: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install_sample(tmp_path, monkeypatch)
    assert installed_plugins()["Licensed"](job(labels=labels), cluster(labels=there)) == reason


@pytest.mark.parametrize(("price", "points"), [("30", 70.0), ("300", 0.0), ("dear", None), ("", None)])
def test_the_samples_score(
    price: str, points: float | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_sample(tmp_path, monkeypatch)
    assert installed_plugins()["Cheap"](job(), cluster(labels={"acme.com/price": price})) == points


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "ranked,Broken",
            "the plugin Broken (acme_broken:judge) cannot be imported: ModuleNotFoundError",
            id="no module",
        ),
        pytest.param("Number=1", "the plugin Number (string:digits) is no function", id="no function"),
        pytest.param(
            "ranked,Licenced", "'Licenced' is no profile: use one of ranked, spread, pack", id="not installed"
        ),
        pytest.param(
            "Licenced=1", "there is no score 'Licenced': there are Placement, Spread", id="no such score"
        ),
        pytest.param("ranked,Capacity", "leave out Capacity: this filter always counts", id="ours"),
    ],
)
def test_one_that_cannot_be_used_is_named(
    text: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install({"Broken": "acme_broken:judge", "Number": "string:digits"}, tmp_path, monkeypatch)
    with pytest.raises(ProfileError) as error:
        parse_profile(text, installed_plugins())
    assert str(error.value).startswith(problem)
    with pytest.raises(BadSettings) as wrong:
        load({"dispatch_profile": text}, {})
    assert problem in str(wrong.value)
