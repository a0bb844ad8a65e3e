"""Commands as people type them who know kubectl."""

import re

import pytest

from tests.published.cases.scripts import run_case

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

USAGE = 2
WRONG = ("No such option", "Invalid value", "Missing option", "No such command", "is unknown")


def test_short_names_and_lists_are_kubectls_and_usage_errors_have_one_code() -> None:
    found = {
        words.strip(): (int(code), answer)
        for code, words, answer in re.findall(
            r"(?m)^rc=(\d+)  kubectl placement (.*?) \| (.*)$", run_case("12")
        )
    }
    assert len(found) > 30, found
    shown = "AdmissionCheck all  Active=False"
    assert found["status ac/all"][1].startswith(shown)
    assert found["status ac/all"][0] == 0
    assert found["explain mcl c1"] == found["explain cluster/c1"]
    assert found["explain mcl c1"][0] == 0
    code, answer = found["plan -f more.yaml,cluster.yaml"]
    assert (code, answer.partition(": ")[0]) == (1, "Placement kueue-system/more")
    assert found["plan -f more.yaml,cluster.yaml"] == found["plan -f more.yaml -f cluster.yaml"]
    usage = {words: code for words, (code, answer) in found.items() if any(one in answer for one in WRONG)}
    assert set(usage.values()) == {USAGE}, usage
