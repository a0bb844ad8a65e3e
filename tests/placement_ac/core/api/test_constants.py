"""The path of a request."""

import pytest

from placement_ac.core.api.constants import SECRET


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("plain.name-1", "plain.name-1"),
        ("../../default/secrets/other", "..%2F..%2Fdefault%2Fsecrets%2Fother"),
        ("s?watch=true#x", "s%3Fwatch%3Dtrue%23x"),
    ],
)
def test_a_name_is_one_segment_whatever_is_in_it(name: str, segment: str) -> None:
    assert SECRET.at("v1").path("ns", name) == f"/api/v1/namespaces/ns/secrets/{segment}"
    assert SECRET.at("v1").path(name) == f"/api/v1/namespaces/{segment}/secrets"
