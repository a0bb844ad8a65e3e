"""The inputs of the core that follow from the settings: above all the rights on workers."""

import io
from contextlib import redirect_stderr

from placement_ac.config.policy import placement_policy, worker_policy_rules, worker_requirements
from placement_ac.config.settings import Settings
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.inputs.rights import ASSUMED, DISPATCHER, RunningKueue
from placement_ac.observability import logs

KUEUE = RunningKueue(ASSUMED)


def test_our_dispatcher_gets_three_more_rights_and_no_worker_is_unfit_without_them() -> None:
    kueues, ours = (Settings(frameworks=("batch/job",), dispatcher=on) for on in (False, True))
    without, with_it = (worker_policy_rules(one, KUEUE) for one in (kueues, ours))
    assert [rule for rule in with_it if rule not in without] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues", "localqueues"], "verbs": ["list"]},
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["resourceflavors"], "verbs": ["list"]},
    ]
    assert DISPATCHER.rule.as_dict() not in without
    assert [rule for rule in without if rule not in with_it] == []
    assert worker_requirements(kueues, "v1beta2", KUEUE) == worker_requirements(ours, "v1beta2", KUEUE)


def test_integrations_bring_the_right_to_read_one_configmap() -> None:
    plain, looks = (Settings(dispatcher=True, look_for=words) for words in ((), ("integrations",)))
    without, with_it = (worker_policy_rules(one, KUEUE) for one in (plain, looks))
    assert [rule for rule in with_it if rule not in without] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": [KUEUE_CONFIG_MAP],
            "verbs": ["get"],
        }
    ]
    assert worker_policy_rules(looks.model_copy(update={"dispatcher": False}), KUEUE) == worker_policy_rules(
        Settings(), KUEUE
    )


def test_of_each_filter_and_score_the_first_problem_is_logged() -> None:
    output = io.StringIO()
    with redirect_stderr(output):
        logs.configure("text", "info")
    report = placement_policy(Settings()).report_rule_problem
    for rule in ("Cost", "Cost", "Capacity"):
        report(rule, "ZeroDivisionError at cost.py:5")
    logs.configure("text", "error")
    lines = [line for line in output.getvalue().splitlines() if "a filter or score" in line]
    assert [("Cost" in line, "cost.py:5" in line) for line in lines] == [(True, True), (False, True)]
