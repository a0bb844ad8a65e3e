"""A dump of objects of the published CRDs, with a canary in every field, holds the known fields alone."""

import pytest

from kubectl_placement.hub.kinds import ALL_KINDS
from placement_ac.core.api.constants import Kind
from tests.kubectl_placement.test_dump_canaries import has_known_fields_alone, schema_in
from tests.published.shared import published_crds

CRDS = published_crds()


@pytest.mark.parametrize(
    "kind", [kind for kind in ALL_KINDS if schema_in(CRDS, kind)], ids=lambda kind: kind.kind
)
def test_only_known_fields_are_in_a_dump(kind: Kind) -> None:
    has_known_fields_alone(kind, schema_in(CRDS, kind))
