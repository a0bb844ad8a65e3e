"""Tokens of many clusters are renewed at random: each kubeconfig follows, and nothing else is written."""

import asyncio
from pathlib import Path

import pytest

from bench.rotation import Clock, measure, stage
from placement_ac.kube.client import Object
from tests.support.builders import encoded, kubeconfig


@pytest.mark.long
def test_the_kubeconfigs_of_many_clusters_follow_their_tokens(tmp_path: Path) -> None:
    """30 renewals take seconds. `make bench-rotation` measures how soon, and with 50 clusters."""
    clusters = [f"cluster{number}" for number in range(15)]
    with stage(clusters, tmp_path) as (hub, ocm):
        result = asyncio.run(measure(tmp_path / "kubeconfig", hub, ocm, clusters, 30))
    assert result["notWritten"] == 0
    assert result["writes"].keys() == {"PATCH secrets"}
    assert result["writes"]["PATCH secrets"] <= 30, "two in a row for one cluster may be one write"


def reported(cluster: str, token: str) -> Object:
    return {"metadata": {"namespace": cluster}, "data": {"token": encoded(token.encode())}}


def written(cluster: str, token: str) -> Object:
    content = kubeconfig(token)
    return {"metadata": {"namespace": "kueue-system"}, "data": {"kubeconfig": encoded(content)}}


@pytest.mark.parametrize(
    ("seen", "missing"),
    [
        pytest.param([reported("a", "1"), reported("a", "2"), written("a", "2")], [], id="two in a row"),
        pytest.param([reported("a", "1"), written("a", "1"), reported("a", "2")], ["a"], id="the last"),
        pytest.param([reported("a", "1"), reported("b", "2"), written("b", "2")], ["a"], id="another's"),
    ],
)
def test_the_last_token_of_each_cluster_has_to_be_written(seen: list[Object], missing: list[str]) -> None:
    clock = Clock()
    for secret in seen:
        clock.take(secret)
    assert clock.not_written() == missing
