"""The embedded hub is known as such; names that are close are asked about."""

import json

import pytest

from kubectl_placement.doctor.hub_rules import RULES
from tests.support.commands import Run
from tests.support.driver import Driver


@pytest.mark.embedded("an API server in another process is no embedded hub, which doctor knows")
def test_the_embedded_hub_is_known(admin: Driver, run: Run) -> None:
    admin.check("p")
    findings = json.loads(run("doctor", "-o", "json").stdout)["findings"]
    passed_over = {
        finding["check"] for finding in findings if finding["message"].startswith("not on the embedded hub")
    }
    assert passed_over >= {"kueue-deployment", "kueue-release", "kueue-configuration", "multikueue-gate"}
    assert passed_over < {rule.check for rule in RULES}
    problems = {
        finding["check"]: finding["fix"] for finding in findings if finding["level"] in ("WARN", "FAIL")
    }
    assert problems["controller"] == "placement-ac run"
    assert "kueue-deployment" not in problems


SUGGESTED = {
    "status placement-demo": "not found; did you mean placement-demo1?",
    "explain check placement-demo": "not found; did you mean placement-demo1?",
    "explain placement placement-x": "not found; did you mean placement-y?",
    "explain placement-demo": "found; did you mean placement-demo1",
    "explain check zzz": '"zzz" not found\n',
}
"""Words, and what the error says: a name that is close, if there is one."""


def test_an_unknown_name_gets_a_suggestion(admin: Driver, run: Run) -> None:
    admin.check("placement-demo1", "placement-x")
    admin.placement("placement-y")
    for words, expected in SUGGESTED.items():
        done = run(*words.split())
        assert (done.exit_code, expected in done.stderr) == (1, True), done.stderr
    says = json.loads(run("status", "-o", "json").stdout)["checks"][0]["placementSays"]
    assert says == "it does not exist in namespace kueue-system; did you mean placement-y?"
    explained = run("explain", "check", "placement-demo1").stdout
    assert "there is no Placement kueue-system/placement-x; did you mean placement-y?" in explained
