"""Tokens of many clusters are renewed at random: each kubeconfig follows, and nothing else is written."""

import asyncio
from pathlib import Path

from bench.rotation import measure, stage


def test_the_kubeconfigs_of_50_clusters_follow_their_tokens(tmp_path: Path) -> None:
    """How soon, `make bench-rotation` tells."""
    clusters = [f"cluster{number}" for number in range(50)]
    with stage(clusters, tmp_path) as (hub, ocm):
        result = asyncio.run(measure(tmp_path / "kubeconfig", hub, ocm, clusters, 100))
    assert result["notWritten"] == 0
    assert result["writes"].keys() == {"PATCH secrets"}
    assert 90 < result["writes"]["PATCH secrets"] <= 100, "two in a row for one cluster may be one write"
