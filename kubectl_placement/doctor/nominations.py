"""The rule for jobs to which nobody nominates clusters: those of a MultiKueueConfig by hand. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok, skip
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
)
from placement_ac.core.api.decode import checks_listed
from placement_ac.core.api.fields import name_of
from placement_ac.core.api.text import joined


@hub_rule(
    "nominations",
    "with `--dispatcher`, which nominates clusters of Placements alone, no ClusterQueue lists a multikueue "
    "check with another list",
    "kubectl get multikueueconfig NAME -o yaml",
)
def nominations(setup: HubSetup) -> Iterator[Finding]:
    if not setup.settings.dispatcher or _kueue_nominates(setup):
        yield skip("Kueue nominates clusters for all jobs")
        return
    if unknown := setup.unknown(ADMISSION_CHECK, CLUSTER_QUEUE, MULTIKUEUE_CONFIG):
        yield from unknown
        return
    existing = {name_of(config) for config in setup.dump.of(MULTIKUEUE_CONFIG)}
    for check in setup.view.checks:
        name, config = check.meta.name, check.config
        queues = [name_of(queue) for queue in setup.dump.of(CLUSTER_QUEUE) if name in checks_listed(queue)]
        if queues and config in existing - setup.checks_by_placement.keys():
            yield fail(
                f"jobs of ClusterQueue {joined(queues)} are sent nowhere: AdmissionCheck {name} names "
                f"MultiKueueConfig {config}, which is not of a Placement, and Kueue leaves all nominations "
                "to placement-ac",
                f"kubectl get multikueueconfig {config} -o yaml  # select its clusters with a Placement, and "
                "create an AdmissionCheck of placement-ac that names it",
                f"ClusterQueue {queues[0]}",
            )
    yield ok(
        "placement-ac nominates clusters for the jobs of all ClusterQueues: for each job one that is known "
        f"to have room, or up to {setup.settings.step_size} where that is not known"
    )


def _kueue_nominates(setup: HubSetup) -> bool:
    """Whether Kueue's configuration names a dispatcher of its own: `dispatcher-name` is about that."""
    named = setup.kueue.multikueue.get("dispatcherName")
    return not setup.kueue.config_problem and named != OUR_CONTROLLER


RULES: Final = (nominations,)
