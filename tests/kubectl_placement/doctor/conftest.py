"""A hub and a worker that are set up right, for `doctor --workers`."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from placement_lab.hub import Hub
from placement_lab.standins import manifests
from tests.kubectl_placement.doctor.worker_pair import CLUSTER, EXTRA, SAMPLES, TEAM, TOKEN, Pair
from tests.support import kueue
from tests.support.admin import Admin, login_to
from tests.support.crds import strict_crds
from tests.support.driver import NS, Driver
from tests.support.real_hub import HubMaker


@pytest.fixture(scope="module")
def pair(a_hub: HubMaker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    crds = strict_crds()
    with ExitStack() as opened:
        hub, worker = (opened.enter_context(maker(crds=crds)) for maker in (a_hub, Hub))
        there = Pair(opened.enter_context(Driver(hub)), opened.enter_context(Driver(worker)), folder)
        hub.write_kubeconfig(folder / "hub.kubeconfig")
        config = worker.kubeconfig()
        config["contexts"][0]["name"] = CLUSTER
        config["contexts"][0]["context"] = {"cluster": CLUSTER, "user": CLUSTER}
        config["clusters"][0]["name"] = config["users"][0]["name"] = CLUSTER
        config.pop("current-context")
        (folder / "worker.kubeconfig").write_text(json.dumps(config))
        worker.add_user("limited", TOKEN, groups=())
        with Admin(login_to(hub)) as admin:
            home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}}
            admin.apply(home, TEAM, *manifests.load(SAMPLES / "hub.yaml"), EXTRA, *kueue.installed())
        with Admin(login_to(worker)) as admin:
            admin.apply(home)
        there.hub.decide("placement-tas", CLUSTER)
        (folder / f"{CLUSTER}.kubeconfig").write_bytes(there.secret())
        there.set_up()
        yield there


@pytest.fixture
def broken_pair(pair: Pair) -> Iterator[Pair]:
    """The pair, which is put up anew in the end."""
    yield pair
    pair.set_up()
