"""Namespaces whose jobs Kueue leaves alone: nothing starts them, or they run beside all quota."""

from dataclasses import replace
from typing import Any

import pytest

from kubectl_placement.doctor.commands import HUB
from kubectl_placement.doctor.finding import Level
from kubectl_placement.doctor.managed_namespaces import label_namespaces, managed_namespaces
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_inspection import ExpectedQueue, WorkerTarget
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.hub.managed_namespaces import unmanaged
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import CONFIG_MAP, NAMESPACE
from placement_ac.core.api.fields import key_of
from placement_ac.core.inputs.rights import KueueRelease
from tests.kubectl_placement.doctor.broken_setups import CONFIG, FILE
from tests.kubectl_placement.doctor.test_worker_rules import HEALTHY, TARGET, findings_of
from tests.support import healthy
from tests.support.builders import Raw

OPTED_IN: Raw = {"matchLabels": {"managed-by-kueue": "true"}}


def namespace(name: str, **labels: str) -> Raw:
    labels = {"kubernetes.io/metadata.name": name} | labels
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


OUT, IN = namespace("out"), namespace("in", **{"managed-by-kueue": "true"})
BOTH = {"out": OUT, "in": IN}
NAMED = {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["in"]}]}


@pytest.mark.parametrize(
    ("selector", "gates", "release", "names"),
    [
        pytest.param(None, {}, None, (), id="the default one"),
        pytest.param(OPTED_IN, {}, None, ("out",), id="by label"),
        pytest.param(NAMED, {}, None, ("in",), id="by name"),
        pytest.param({}, {}, None, (), id="all"),
        pytest.param({"matchExpressions": [{"operator": "Is"}]}, {}, None, (), id="Kueue refuses it"),
        pytest.param(OPTED_IN, {}, KueueRelease(0, 14, 0), (), id="before the gate was on"),
        pytest.param(
            OPTED_IN,
            {"ManagedJobsNamespaceSelectorAlwaysRespected": False},
            KueueRelease(0, 18, 0),
            (),
            id="without the gate",
        ),
    ],
)
def test_a_selector_leaves_out(
    selector: Raw | None, gates: dict[str, bool], release: KueueRelease | None, names: tuple[str, ...]
) -> None:
    config: dict[str, Any] = {} if selector is None else {"managedJobsNamespaceSelector": selector}
    assert unmanaged(config, gates, release, BOTH) == names


def test_labels_are_put_on_where_they_are_enough() -> None:
    def of(selector: Raw) -> str:
        return label_namespaces(HUB, {"managedJobsNamespaceSelector": selector}, ["a", "b"])

    assert of(OPTED_IN) == "kubectl label namespaces a b managed-by-kueue=true"
    assert of(OPTED_IN | NAMED) == "kubectl edit namespaces a b  # labels for managedJobsNamespaceSelector"


SELECTOR = "managedJobsNamespaceSelector: {matchLabels: {managed-by-kueue: 'true'}}\n"


def selecting() -> list[Raw]:
    """Return the healthy hub without namespaces and queues, with a selector in Kueue's configuration."""
    objects = [one for one in healthy.objects() if one["kind"] not in ("Namespace", "LocalQueue")]
    (config,) = [one for one in objects if (one["kind"], *key_of(one)) == CONFIG]
    config["data"][FILE] += SELECTOR
    return objects


def test_namespaces_are_unknown_only_where_they_are_asked_for() -> None:
    dump = dump_of(selecting())
    setup = HubSetup(HubView(dump, Settings(), healthy.NOW))
    assert [one.level for one in managed_namespaces.findings(setup)] == [Level.WARN] * 2
    without = HubSetup(HubView(dump.with_objects({CONFIG_MAP: ()}), Settings(), healthy.NOW))
    assert [one.level for one in managed_namespaces.findings(without)] == [Level.OK]


def test_a_worker() -> None:
    text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    wanted = WorkerTarget("c1", TARGET.credential, tuple(ExpectedQueue(name, "q", "cq") for name in BOTH))
    visit = replace(
        HEALTHY,
        target=wanted,
        objects=HEALTHY.objects | {NAMESPACE: (OUT, IN)},
        kueue_config={"data": {FILE: f"{text}{SELECTOR}"}},
    )
    message = (
        "c1: Kueue there leaves jobs of namespace out alone, as its managedJobsNamespaceSelector selects"
        " others: such a job that is sent there stays suspended for ever"
    )
    assert ("worker-integrations", Level.FAIL, message) in findings_of(visit)
