"""The rule for scores that the controller reports: those that Placements choose by are there. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, put_secret
from kubectl_placement.doctor.finding import Finding, fail, ok, skip, warn
from kubectl_placement.doctor.rbac import missing_permissions, rules_of
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub import kinds
from kubectl_placement.hub.controller_settings import deployments
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    ANNOTATION_ADOPT,
    MANAGED_CLUSTER,
    OCM_CLUSTER,
    PLACEMENT,
    PLACEMENT_SCORE,
    SCORES_NAME,
)
from placement_ac.core.api.fields import get_str, key_of
from placement_ac.core.api.text import count_text, joined
from placement_ac.core.score_reports.planning import counting, is_taken

NEEDED: Final = {"addonplacementscores": ("create",)}
INSTALL_ROLE: Final = "kubectl apply -f config/components/scores/role.yaml"


@hub_rule(
    "scores",
    "the scores of the controller by which Placements choose are reported, and are nobody else's",
    f"kubectl get addonplacementscores -A --field-selector metadata.name={SCORES_NAME}",
    ADMISSION_CHECK,
    unknown=lambda setup: setup.unknown(PLACEMENT, namespaces=setup.placement_namespaces),
)
def scores(setup: HubSetup) -> Iterator[Finding]:
    clusters = setup.view.cache.scores.clusters_by_placement()
    if not clusters:
        yield skip("no Placement chooses by a score of the controller")
        return
    placement = next(iter(clusters))
    if not setup.settings.report_scores:
        message = f"Placement {placement} chooses by {SCORES_NAME}, and the controller reports no scores"
        yield setup.settings_failure(message, setup.set_setting("report_scores", "true"))
        return
    if setup.served_versions(PLACEMENT_SCORE) == ():
        see = HUB.run("api-resources", f"--api-group={OCM_CLUSTER}")
        yield fail(f"install the CRD of {PLACEMENT_SCORE}: they are not served, so none is reported", see)
        return
    if unknown := setup.unknown(PLACEMENT_SCORE, MANAGED_CLUSTER):
        yield from unknown
        return
    yield from _rights(setup)
    names = sorted({cluster for named in clusters.values() for cluster in named})
    problems = [finding for name in names for finding in _of_cluster(setup, name)]
    yield from problems
    yield ok(f"{count_text(len(names) - len(problems), 'cluster')} with scores")


def _rights(setup: HubSetup) -> Iterator[Finding]:
    deployment = next(iter(deployments(setup.dump)), None)
    if deployment is None or setup.unknown(kinds.CLUSTER_ROLE, kinds.CLUSTER_ROLE_BINDING):
        return
    namespace, _ = key_of(deployment)
    account = get_str(deployment, "spec", "template", "spec", "serviceAccountName") or "default"
    if missing := missing_permissions(rules_of(setup.dump, namespace, account), OCM_CLUSTER, NEEDED):
        message = f"ServiceAccount {namespace}/{account}, the controller's, may not {joined(missing, '; ')}"
        yield fail(message, INSTALL_ROLE)


def _of_cluster(setup: HubSetup, cluster: str) -> Iterator[Finding]:
    """Yield at most one finding."""
    inputs = setup.view.cache.scores.inputs(cluster, setup.view.now)
    words = ("-n", cluster, str(PLACEMENT_SCORE), SCORES_NAME)
    if is_taken(inputs.observed):
        message = (
            f"{PLACEMENT_SCORE.kind} {cluster}/{SCORES_NAME} is owned by someone else, and stays as it is"
        )
        fix = HUB.run("annotate", *words, f"{ANNOTATION_ADOPT}=true")
        yield warn(message, fix, cluster=cluster)
    elif inputs.credentials is None:
        fix = put_secret(setup.kueue_namespace, f"multikueue-{cluster}", cluster)
        yield warn(
            f"cluster {cluster} has no score: no credentials for it are on the hub", fix, cluster=cluster
        )
    elif not counting(inputs.observed, setup.view.now):
        fix = f"kubectl logs {setup.controller_words} --all-pods --tail=100"
        yield warn(f"cluster {cluster} has no score: its worker was not read lately", fix, cluster=cluster)


RULES: Final = (scores,)
