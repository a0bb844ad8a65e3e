"""Fields of a manifest that its kind does not have."""

from typing import Any

import pytest

from kubectl_placement.hub.dump import Dump
from kubectl_placement.hub.dump_files import dump_of
from kubectl_placement.plan.unknown_fields import spec_defaults, unknown_fields
from placement_ac.core.api.constants import ADMISSION_CHECK, PLACEMENT
from tests.support.builders import placement
from tests.support.crds import strict_crds

RESOURCE = PLACEMENT.at("v1beta1")
CRDS = dump_of(strict_crds())


def found(dump: Dump = CRDS, **spec: Any) -> list[str]:
    return list(unknown_fields(placement(spec=spec), RESOURCE, dump))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(
            {"numberOfCluster": 1}, ["spec.numberOfCluster; did you mean numberOfClusters?"], id="near"
        ),
        pytest.param({"zzz": 1}, ["spec.zzz"], id="far"),
        pytest.param({"numberOfClusters": 1}, [], id="known"),
        pytest.param(
            {"predicates": [{}, {"requiredClusterSelectr": {}}]},
            ["spec.predicates[1].requiredClusterSelectr; did you mean requiredClusterSelector?"],
            id="in a list",
        ),
        pytest.param(
            {"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"any": "x"}}}}]},
            [],
            id="a map of any keys",
        ),
        pytest.param({"predicates": "x"}, [], id="another type"),
    ],
)
def test_unknown_fields(spec: dict[str, Any], expected: list[str]) -> None:
    assert found(**spec) == expected


def test_many_unknown_fields_are_counted() -> None:
    names = found(**{f"unknown{number}": 1 for number in range(20_000)})
    assert (len(names), names[-1]) == (11, "spec.unknown10; 20,000 fields are unknown")


def test_the_values_that_the_api_server_sets() -> None:
    assert spec_defaults(ADMISSION_CHECK.at("v1beta1"), CRDS) == {"retryDelayMinutes": 15}
    assert spec_defaults(ADMISSION_CHECK.at("v1beta1"), Dump()) == {}


def test_without_a_schema_nothing_is_unknown() -> None:
    assert found(Dump(), zzz=1) == []
