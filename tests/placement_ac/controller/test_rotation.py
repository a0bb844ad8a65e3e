"""Tokens of several clusters are renewed at random: each kubeconfig follows, and nothing else is written."""

import random
import time

import pytest

from tests.support.credentials import open_stage
from tests.support.driver import Controllers, Driver

CLUSTERS = ("a", "b", "c", "d")
RENEWALS = 30


@pytest.mark.long
def test_the_kubeconfigs_of_several_clusters_follow_their_tokens(
    admin: Driver, controllers: Controllers
) -> None:
    chance = random.Random(1)
    with open_stage(admin, controllers, CLUSTERS) as stage:
        admin.check("p")
        admin.placement("p")
        stage.select(*CLUSTERS)
        stage.start()
        stage.until_connected(*CLUSTERS)
        since = len(admin.hub.journal)
        for _ in range(RENEWALS):
            stage.ocm.refresh(chance.choice(CLUSTERS))
            time.sleep(chance.uniform(0, 0.05))
        for cluster in CLUSTERS:
            stage.until_current(cluster)
        writes = admin.writes(since)
    assert {(method, path.split("/")[-2]) for method, path in writes} == {("PATCH", "secrets")}
    assert len(writes) <= RENEWALS, "two in a row for one cluster may be one write"
