"""Reaching a worker by its ClusterProfile, with the credentials of a plugin."""

import json
from pathlib import Path
from typing import Any

import pytest

from placement_ac.core.api import decode
from placement_ac.core.api.constants import CLUSTER_PROFILE
from placement_ac.core.api.objects import KueueObject
from placement_ac.core.kubeconfig.refusals import Refusal
from placement_ac.workers.copies import CopyReader, WorkerCopies
from placement_ac.workers.exec_plugins import AccessProviders
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN, V1, executable, gives
from tests.support.worker_copies import ask, copy_of, problem, with_reader
from tests.support.workers import Raw

PROFILES = CLUSTER_PROFILE.at("v1alpha1")


def by_profile(name: str = "w") -> KueueObject:
    source = {"clusterProfileRef": {"name": name}}
    return decode.kueue_object({"metadata": {"name": "p-w"}, "spec": {"clusterSource": source}})


def providers(command: str, **fields: Any) -> AccessProviders:
    exec_ = {"apiVersion": V1, "command": command, "provideClusterInfo": True}
    return AccessProviders.model_validate({"providers": [{"name": "ocm", "execConfig": exec_} | fields]})


def offer(worker: Driver, name: str = "ocm", **cluster: Any) -> Raw:
    content = worker.hub.kubeconfig()["clusters"][0]["cluster"]
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "w"}}
    return {"name": name, "cluster": content | {"extensions": [extension]} | cluster}


def ask_by_profile(admin: Driver, command: str, **options: Any) -> WorkerCopies:
    return ask(admin, by_profile(), providers=providers(command), profile_resource=PROFILES, **options)


@pytest.mark.parametrize("field", ["accessProviders", "credentialProviders"])
def test_a_clusterprofile_with_a_plugin(admin: Driver, worker: Driver, tmp_path: Path, field: str) -> None:
    admin.profile("w", **{field: [offer(worker, "other"), offer(worker)]})
    copy_of(worker, "runs", "QuotaReserved")
    plugin = executable(tmp_path / "plugin", f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; {gives()}')
    assert ask_by_profile(admin, plugin) == WorkerCopies({("ns", "runs"): True})
    expected_text = json.loads((tmp_path / "info").read_text())["spec"]["cluster"]
    assert (expected_text["server"], expected_text["config"]) == (worker.hub.secure_url, {"clusterName": "w"})


@pytest.mark.parametrize(
    ("expires", "runs"),
    [
        pytest.param({}, 1, id="no expiry"),
        pytest.param({"expirationTimestamp": "2999-01-01T00:00:00Z"}, 1, id="later"),
        pytest.param({"expirationTimestamp": "2020-01-01T00:00:00Z"}, 2, id="expired"),
    ],
)
def test_credentials_are_used_until_they_expire(
    admin: Driver, worker: Driver, tmp_path: Path, expires: dict[str, str], runs: int
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    plugin = executable(tmp_path / "plugin", f"echo x >> {tmp_path}/runs; {gives(**expires)}")

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        return [await workers.read(by_profile()) for _ in range(2)]

    options = {"providers": providers(plugin), "profile_resource": PROFILES}
    assert with_reader(admin, twice, **options) == [WorkerCopies(), WorkerCopies()]
    assert (tmp_path / "runs").read_text().count("x") == runs


def test_credentials_that_are_not_accepted_are_asked_for_again(
    admin: Driver, worker: Driver, tmp_path: Path
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    old = gives(token="of-yesterday")
    plugin = executable(
        tmp_path / "plugin", f"test -f {tmp_path}/ran && {gives()} || {old}; touch {tmp_path}/ran"
    )

    async def twice(workers: CopyReader) -> list[WorkerCopies]:
        return [await workers.read(by_profile()) for _ in range(2)]

    options = {"providers": providers(plugin), "profile_resource": PROFILES}
    expected_text = f"the worker does not accept the credentials of ClusterProfile {NS}/w with provider ocm"
    assert with_reader(admin, twice, **options) == [problem(expected_text), WorkerCopies()]


def test_a_clusterprofile_that_cannot_be_used(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    expected_text = f"ClusterProfile {NS}/w"
    plugin = executable(tmp_path / "plugin", gives())
    none = problem(f"{expected_text} needs an access provider, and none is configured")
    assert ask(admin, by_profile(), profile_resource=PROFILES) == none
    no_kind = problem(f"{expected_text} cannot be read: the hub has no ClusterProfiles")
    assert ask(admin, by_profile(), providers=providers(plugin)) == no_kind
    assert ask_by_profile(admin, plugin) == problem(f"{expected_text} does not exist")
    admin.profile("w", accessProviders=[offer(worker, "other")])
    assert ask_by_profile(admin, plugin) == problem(
        f"{expected_text} has none of the access providers that are configured"
    )


def test_a_clusterprofile_of_another_shape(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    profile = {"metadata": {"name": "w"}, "status": {"accessProviders": 7}}
    admin.hub.faults.add("GET", "clusterprofiles/w", status=200, body=profile)
    expected_text = (
        f"ClusterProfile {NS}/w cannot be read: status.accessProviders: Input should be a valid list"
    )
    assert ask_by_profile(admin, executable(tmp_path / "plugin", gives())) == problem(expected_text)


def test_a_clusterprofile_whose_server_is_none(admin: Driver, worker: Driver, tmp_path: Path) -> None:
    admin.profile("w", accessProviders=[offer(worker, server="nowhere")])
    expected_text = f"in ClusterProfile {NS}/w with provider ocm, {Refusal.ADDRESS}"
    assert ask_by_profile(admin, executable(tmp_path / "plugin", gives())) == problem(expected_text)


@pytest.mark.parametrize(
    ("cluster", "suffixes", "field"),
    [
        pytest.param({}, ["localhost", "127.0.0.1"], "", id="allowed"),
        pytest.param({}, [".example.com"], "server", id="another server"),
        pytest.param(
            {"proxy-url": "http://proxy.test"}, ["localhost", "127.0.0.1"], "proxy-url", id="a proxy"
        ),
    ],
)
def test_a_plugin_runs_for_allowed_servers_only(
    admin: Driver, worker: Driver, tmp_path: Path, cluster: Raw, suffixes: list[str], field: str
) -> None:
    profile = {"metadata": {"name": "w"}, "status": {"accessProviders": [offer(worker, **cluster)]}}
    admin.hub.faults.add("GET", "clusterprofiles/w", status=200, body=profile)
    plugin = executable(tmp_path / "plugin", f"touch {tmp_path}/ran; {gives()}")
    options = {"providers": providers(plugin, allowedServerSuffixes=suffixes), "profile_resource": PROFILES}
    answer = ask(admin, by_profile(), **options)
    if not field:
        assert answer == WorkerCopies()
        return
    assert not (tmp_path / "ran").exists()
    assert answer == problem(
        f"in ClusterProfile {NS}/w, correct the {field} of access provider ocm, or add its host to "
        "allowedServerSuffixes in the file --access-providers: it is not allowed there"
    )


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param(f"echo {TOKEN} >&2; exit 1", "ended with code 1: run it by hand to see why", id="fails"),
        pytest.param("sleep 30", "gave no credentials within 0.5 s", id="hangs"),
    ],
)
def test_a_plugin_that_gives_nothing(
    admin: Driver, worker: Driver, tmp_path: Path, script: str, why: str
) -> None:
    admin.profile("w", accessProviders=[offer(worker)])
    plugin = executable(tmp_path / "plugin", script)
    answer = ask_by_profile(admin, plugin, timeout=0.5 if "sleep" in script else 10)
    assert answer == problem(f"plugin {plugin} {why}")
