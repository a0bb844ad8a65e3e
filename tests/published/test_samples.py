"""The samples are valid by the published CRDs, too."""

from typing import Any

from placement_lab.standins import manifests
from tests.published.shared import published_crds
from tests.samples.test_samples import OBJECTS, closed_schemas, errors_of


def test_the_samples_are_valid_against_the_published_crds() -> None:
    schemas = closed_schemas(published_crds())
    items: list[tuple[str, Any]] = [(file.name, item) for file in OBJECTS for item in manifests.load(file)]
    errors = {
        (file, error)
        for file, item in items
        if (schema := schemas.get((item["apiVersion"], item["kind"])))
        for error in errors_of(item, schema)
    }
    assert errors == set()
    assert len(schemas) > 15
