"""The integrations that Kueue's configuration enables."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement_ac.core.api.kueue_integrations import integrations_of_config_map

HEAD = "kind: Configuration\n"
PIPELINES = "PipelineRun.v1.tekton.dev"


def found_in(text: Any) -> set[str] | None:
    found = integrations_of_config_map({"data": {"controller_manager_config.yaml": text}})
    return found if found is None else {*found}


@pytest.mark.parametrize(
    ("text", "enabled"),
    [
        pytest.param("integrations: {frameworks: [batch/job, pod]}", {"batch/job", "pod"}, id="names"),
        pytest.param("", {"batch/job"}, id="nothing about integrations"),
        pytest.param("integrations:", {"batch/job"}, id="an empty section"),
        pytest.param("integrations: {frameworks: []}", {"batch/job"}, id="no framework"),
        pytest.param(
            f"integrations: {{externalFrameworks: [{PIPELINES}]}}",
            {"batch/job", PIPELINES},
            id="external ones",
        ),
        pytest.param(
            f"multiKueue: {{externalFrameworks: [{{name: {PIPELINES}}}]}}",
            {"batch/job"},
            id="those of MultiKueue",
        ),
        pytest.param(
            "integrations: {frameworks: [statefulset]}", {"statefulset", "pod"}, id="one that enables another"
        ),
        pytest.param("integrations: [batch/job]", None, id="a list in place of the section"),
        pytest.param("integrations: {frameworks: batch/job}", None, id="a text in place of the list"),
    ],
)
def test_what_a_configuration_enables(text: str, enabled: set[str] | None) -> None:
    assert found_in(HEAD + text) == enabled


@pytest.mark.parametrize("config_map", [{}, {"data": None}, {"data": {"other": HEAD}}], ids=str)
def test_without_a_configuration_nothing_is_known(config_map: dict[str, Any]) -> None:
    assert integrations_of_config_map(config_map) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["batch/job", "pod", "Configuration", ""]),
    lambda some: (
        st.lists(some, max_size=3)
        | st.dictionaries(st.sampled_from(["frameworks", "externalFrameworks", "integrations", "x"]), some)
    ),
    max_leaves=8,
)


@given(integrations=VALUES)
def test_a_configuration_may_be_anything(integrations: Any) -> None:
    """Kueue's default, or names that the configuration has, or nothing is known; it never raises."""
    text = json.dumps({"kind": "Configuration", "integrations": integrations})
    found = found_in(text)
    assert found is None or (found and found <= {"batch/job", "pod", "Configuration", ""})
    assert found_in(json.dumps(integrations)) is None, "it is of another kind"


@given(text=st.text())
def test_a_configuration_may_be_any_text(text: str) -> None:
    assert found_in(text) is None
