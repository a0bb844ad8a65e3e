"""The rights on workers that follow from the settings."""

from placement_ac.config.policy import worker_policy_rules, worker_requirements
from placement_ac.config.settings import Settings
from placement_ac.core.inputs.rights import ASSUMED, DISPATCHER, RunningKueue

KUEUE = RunningKueue(ASSUMED)


def test_our_dispatcher_gets_two_more_rights_and_no_worker_is_unfit_without_them() -> None:
    kueues, ours = (Settings(frameworks=("batch/job",), dispatcher=on) for on in (False, True))
    without, with_it = (worker_policy_rules(one, KUEUE) for one in (kueues, ours))
    assert [rule for rule in with_it if rule not in without] == [
        {"apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues", "localqueues"], "verbs": ["list"]}
    ]
    assert DISPATCHER.rule.as_dict() not in without
    assert [rule for rule in without if rule not in with_it] == []
    assert worker_requirements(kueues, "v1beta2", KUEUE) == worker_requirements(ours, "v1beta2", KUEUE)
