"""Installed plugins of the dispatcher: found by their entry point, and imported when a profile names them."""

import sys
from pathlib import Path

import pytest

from placement_ac.config.dispatch_plugins import installed_plugins
from placement_ac.config.load import load
from placement_ac.core.api.errors import BadSettings
from placement_ac.core.dispatch.plugins import AssumedPlugins
from placement_ac.core.dispatch.profiles import ProfileError, parse_profile
from tests.support.jobs_to_dispatch import cluster, job
from tests.support.plugins import Installer


def test_one_is_imported_when_a_profile_names_it(plugins: Installer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "acme_dispatch", raising=False)
    plugins.install_sample()
    found = installed_plugins()
    assert (sorted(found), "acme_dispatch" in sys.modules) == (["Cheap", "Licensed"], False)
    profile = parse_profile("ranked,Licensed,Cheap=5", found)
    assert (profile.filters, dict(profile.weights)["Cheap"]) == (("Licensed",), 5)
    assert "acme_dispatch" in sys.modules


@pytest.mark.parametrize(
    ("labels", "candidate_labels", "reason"),
    [
        ({}, {}, None),
        ({"acme.com/product": "solver"}, {}, "had no license for solver"),
        ({"acme.com/product": "solver"}, {"acme.com/license-solver": ""}, None),
    ],
)
def test_the_samples_filter(
    plugins: Installer, labels: dict[str, str], candidate_labels: dict[str, str], reason: str | None
) -> None:
    plugins.install_sample()
    assert (
        installed_plugins()["Licensed"].refuse(job(labels=labels), cluster(labels=candidate_labels)) == reason
    )


@pytest.mark.parametrize(("price", "points"), [("30", 70.0), ("300", 0.0), ("dear", None), ("", None)])
def test_the_samples_score(plugins: Installer, price: str, points: float | None) -> None:
    plugins.install_sample()
    assert installed_plugins()["Cheap"].rate(job(), cluster(labels={"acme.com/price": price})) == points


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param(
            "ranked,Broken",
            "the plugin Broken (acme_broken:judge) cannot be imported: ModuleNotFoundError",
            id="no module",
        ),
        pytest.param(
            "ranked,Leaves",
            "the plugin Leaves (acme_leaves:judge) cannot be imported: SystemExit",
            id="it ends",
        ),
        pytest.param("Number=1", "the plugin Number (string:digits) is no function", id="no function"),
        pytest.param(
            "Twice=1",
            "several plugins have the name Twice: string:capwords, textwrap:dedent",
            id="two packages",
        ),
        pytest.param(
            "ranked,Licenced", "'Licenced' is no profile: use one of ranked, spread, pack", id="not installed"
        ),
        pytest.param(
            "Licenced=1", "there is no score 'Licenced': there are Placement, Spread", id="no such score"
        ),
        pytest.param("ranked,Capacity", "leave out Capacity: a built-in filter always counts", id="built-in"),
    ],
)
def test_one_that_cannot_be_used_is_named(plugins: Installer, text: str, problem: str) -> None:
    (plugins.folder / "acme_leaves.py").write_text("import sys\nsys.exit(1)\n")
    ours = {"Broken": "acme_broken:judge", "Leaves": "acme_leaves:judge", "Number": "string:digits"}
    plugins.install(ours | {"Twice": "string:capwords"})
    plugins.install({"Twice": "textwrap:dedent"}, "other_dispatch")
    with pytest.raises(ProfileError) as error:
        parse_profile(text, installed_plugins())
    assert str(error.value).startswith(problem)
    with pytest.raises(BadSettings) as wrong:
        load({"dispatch_profile": text}, {})
    assert problem in str(wrong.value)


def test_a_plugin_without_a_weight_is_refused_with_the_line_of_the_settings_file(
    plugins: Installer, tmp_path: Path
) -> None:
    plugins.install_sample()
    path = tmp_path / "config.yaml"
    path.write_text("dispatcher: true\ndispatch-profile: ranked,Cheap\n")
    with pytest.raises(BadSettings) as wrong:
        load({"config": str(path)}, {})
    assert str(wrong.value).startswith(
        f"{path}:2: dispatch-profile: 'ranked,Cheap' is not possible: write Cheap=1, or another weight"
    )


def test_one_that_cannot_be_imported_is_imported_once(plugins: Installer) -> None:
    (plugins.folder / "acme_counts.py").write_text("import builtins\nbuiltins.acme.append(1)\n1 / 0\n")
    plugins.install({"Counts": "acme_counts:judge"})
    imports: list[int] = []
    vars(sys.modules["builtins"])["acme"] = imports
    try:
        for _ in range(3):
            with pytest.raises(ProfileError, match="ZeroDivisionError"):
                parse_profile("Counts=1", installed_plugins())
    finally:
        del vars(sys.modules["builtins"])["acme"]
    assert imports == [1]


def test_a_built_in_score_is_never_replaced(plugins: Installer) -> None:
    plugins.install({"Placement": "acme_broken:judge"})
    assert parse_profile("Placement=1", installed_plugins()).weights == (("Placement", 1),)


def test_settings_of_a_controller_elsewhere_may_name_plugins_that_are_not_installed_here() -> None:
    loaded = load({"dispatch_profile": "ranked,Licensed,Cheap=5"}, {}, plugins=AssumedPlugins())
    assert loaded.settings.dispatch_profile == "ranked,Licensed,Cheap=5"
    with pytest.raises(BadSettings, match="the weight of Cheap must be"):
        load({"dispatch_profile": "ranked,Cheap=much"}, {}, plugins=AssumedPlugins())


KINDS = """
from __future__ import annotations

def annotated(job, cluster) -> float | None: return None
def points(job, cluster): return 50
def annotated_filter(job, cluster) -> str | None: return None
def reasons(job, cluster): return "was too dear"
def unknown(job, cluster): return None
def fails(job, cluster): raise SystemExit(1)
"""


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        ("ranked,annotated", "write annotated=1, or another weight: it returns points, so it is a score"),
        ("ranked,points", "write points=1, or another weight: it returns points, so it is a score"),
        (
            "annotated_filter=5",
            "write annotated_filter, without a weight: it returns reasons to refuse, so it is a filter",
        ),
        ("reasons=5", "write reasons, without a weight: it returns reasons to refuse, so it is a filter"),
        ("annotated=5,points=1,annotated_filter,reasons", ""),
        ("unknown=5,fails", ""),
        ("ranked,unknown,fails", ""),
    ],
)
def test_a_score_needs_a_weight_and_a_filter_has_none(plugins: Installer, profile: str, problem: str) -> None:
    """A score without a weight was taken for a filter, and every job waited."""
    (plugins.folder / "acme_kinds.py").write_text(KINDS)
    names = ("annotated", "points", "annotated_filter", "reasons", "unknown", "fails")
    plugins.install({name: f"acme_kinds:{name}" for name in names})
    if not problem:
        assert load({"dispatcher": "true", "dispatch_profile": profile}).settings.dispatch_profile == profile
        return
    with pytest.raises(BadSettings) as error:
        load({"dispatcher": "true", "dispatch_profile": profile})
    assert str(error.value).startswith("dispatch-profile: ")
    assert problem in str(error.value)
