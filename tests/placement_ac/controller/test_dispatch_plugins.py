"""Plugins that the profile of a check names decide where jobs go; one that fails holds jobs back."""

import io
from collections.abc import Iterator
from contextlib import redirect_stderr

import pytest

from placement_ac.core.api.constants import ANNOTATION_DISPATCH_PROFILE, OUR_CONTROLLER
from placement_ac.observability import logs
from placement_lab.standins.multikueue import KueueSettings
from tests.placement_ac.controller.test_dispatch import ALL, entry
from tests.support.driver import Controllers, Driver
from tests.support.jobs import Stage, label, open_stage, soon
from tests.support.plugins import SAMPLE, Installer

MODULE = """
from acme_dispatch import cheap, licensed

def fails(job, cluster):
    raise LookupError("secret-token")
"""


@pytest.fixture
def stage(
    admin: Driver, controllers: Controllers, plugins: Installer, profile: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.syspath_prepend(SAMPLE)
    (plugins.folder / "acme_all.py").write_text(MODULE)
    functions = {"Licensed": "licensed", "Cheap": "cheap", "Fails": "fails"}
    plugins.install({name: f"acme_all:{one}" for name, one in functions.items()})
    with open_stage(admin, controllers, ALL, settings=KueueSettings(dispatcher=OUR_CONTROLLER)) as opened:
        for cluster, price in zip(ALL, ("80", "60", "10"), strict=True):
            label(admin, cluster, **{"acme.com/price": price})
        label(admin, "b", **{"acme.com/license-solver": ""})
        opened.select(*ALL)
        use(admin, profile)
        controllers.start(dispatcher=True, step_size=1)
        soon(opened.connected, 3)
        soon(lambda: admin.reason("p"), "Active")
        yield opened


def use(admin: Driver, profile: str) -> None:
    annotations = {ANNOTATION_DISPATCH_PROFILE: profile}
    admin.ask(
        "PATCH", admin.kueue("admissionchecks", "p"), {"metadata": {"annotations": annotations}}, "merge"
    )


@pytest.mark.parametrize("profile", ["Licensed,Cheap=1"])
def test_jobs_go_where_they_say(stage: Stage) -> None:
    stage.submit("any")
    stage.until_runs("any", "c")
    stage.submit("solver", labels={"acme.com/product": "solver"})
    stage.until_runs("solver", "b")
    assert [stage.account(job)[:2] for job in stage.jobs] == [(1, 1)] * 2


@pytest.mark.parametrize("profile", ["ranked,Fails"])
def test_jobs_wait_for_a_filter_that_fails_and_its_error_is_logged_once(stage: Stage, admin: Driver) -> None:
    output = io.StringIO()
    with redirect_stderr(output):
        logs.configure("text", "info")
    stage.submit("one")
    why = "NoClusterFits: 0/3 clusters fit: 3 could not be judged: LookupError (Fails)"
    soon(lambda: entry(stage, "one"), ("Pending", why))
    use(admin, "ranked")
    stage.until_runs("one", "a")
    logs.configure("text", "error")
    logged = [line for line in output.getvalue().splitlines() if "a plugin of the dispatcher failed" in line]
    assert len(logged) == 1
    assert "acme_all.py:5" in logged[0]
    assert "secret-token" not in output.getvalue()


@pytest.mark.parametrize("profile", ["ranked,Missing"])
def test_one_that_is_not_installed_is_reported_and_the_default_counts(stage: Stage, admin: Driver) -> None:
    soon(lambda: "'Missing' is no profile" in (admin.active("p") or {}).get("message", ""))
    stage.submit("one")
    stage.until_runs("one", "a")
