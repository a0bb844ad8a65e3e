"""Cases of `plan`: manifests of public repositories, CEL, jobs as Kueue counts them, objects by hand."""

import re

import pytest

from tests.published.cases.scripts import run_case, section

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
]


def test_manifests_that_the_api_server_refuses() -> None:
    """Without `--server-side`, plan does not know that: a JSON document says that it is not validated."""
    output = run_case("08")
    refused = {
        "f-spec-null": "spec: Required value",
        "j-boolean-label": "must be of type string",
        "l-values-that-the-schema-refuses": "clustersPerDecisionGroup: Invalid value",
    }
    for name, why in refused.items():
        found = section(output, name)
        assert why in found.partition("plan: rc=1")[0], found
    for name in ("c-tolerations-equal", "d-not-the-hub-by-name", "e-more-than-there-are", "k-rollout-groups"):
        assert "plan: rc=1" in section(output, name)


def test_an_expression_is_judged_as_ocms_package_judges_it() -> None:
    """The first has an escape that CEL does not know; the fifth calls `semver` with two arguments."""
    output = run_case("09")
    answers = re.findall(r"^ *(\d+) rc=1 .*\n +(MISCONFIGURED|\[)", output, re.MULTILINE)
    assert len(answers) == 19
    assert [int(number) for number, answer in answers if answer == "MISCONFIGURED"] == [1, 5]


def test_the_pods_of_a_job() -> None:
    output = run_case("15")
    for title in ("1. completions 4", "2. may run with 2 Pods"):
        assert re.search(r"goes to w1, w2, best first", section(output, title)), output


def test_a_resource_that_the_hub_excludes() -> None:
    found = section(run_case("15", "run2.sh"), "6. ephemeral-storage is excluded")
    assert "goes to w1, w2, best first" in found
    assert 'nominated: ["gpu-w1","gpu-w2"]' in found


def test_a_list_by_hand_is_no_business_of_the_controller() -> None:
    output = run_case("24")
    assert "warning" not in output
    before = section(output, "plan, before it is applied")
    assert "create MultiKueueConfig by-hand" in before
    assert "True SomeClustersUnusable" in section(output, "after 4 s with the controller")
