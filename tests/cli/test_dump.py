"""`placement-ac dump`: what it writes, and what the other commands read from it."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from placement_ac.cli.main import main
from placement_ac.core.api.constants import MULTIKUEUE_CONFIG, SECRET
from placement_ac.inspection.hub.dump import LAST_APPLIED
from placement_ac.inspection.hub.redact import redacted
from placement_ac.lab.hub import Hub
from tests.support.builders import kubeconfig, secret
from tests.support.driver import Controllers, Driver, eventually

CONFIG = MULTIKUEUE_CONFIG.kind
TOKEN = "t0p-secret.of-a.worker"


def lists_in(path: str) -> list[Any]:
    return list(yaml.load_all(Path(path).read_text(), yaml.CSafeLoader))


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.fixture
def login(hub: Hub, tmp_path: Path) -> str:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    return f"--kubeconfig={tmp_path / 'kubeconfig'}"


@pytest.fixture
def dumped(admin: Driver, controllers: Controllers, login: str, tmp_path: Path) -> str:
    """Two clusters are selected; the kubeconfig of one of them is refused."""
    for name, text in (("a", kubeconfig(TOKEN)), ("b", b"password: hunter2-hunter2")):
        admin.secret(f"multikueue-{name}", value=base64.b64encode(text).decode())
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a", "b")
    controllers.start()
    eventually(lambda: admin.reason("p"), "SomeClustersUnusable")
    done = run("dump", login)
    assert done.exit_code == 0, done.output
    path = tmp_path / "hub.yaml"
    path.write_text(done.stdout)
    return str(path)


def test_the_other_commands_say_the_same_of_the_dump(dumped: str, login: str) -> None:
    """But for the reason why Kueue cannot use a kubeconfig, which the dump does not contain."""
    live, read = (
        json.loads(run("explain", "check", "p", "-o", "json", source).output)
        for source in (login, f"--from-dump={dumped}")
    )
    assert read["checks"][0]["links"] == live["checks"][0]["links"]
    clusters = [
        [(one["cluster"], one["state"], one["step"]) for one in found["checks"][0]["clusters"]]
        for found in (live, read)
    ]
    assert clusters[0] == clusters[1] == [("a", "listed", "List"), ("b", "unusable", "Credential")]


def test_no_secret_is_in_the_dump(dumped: str) -> None:
    text = Path(dumped).read_text()
    for part in ("hunter2", *TOKEN.split("."), base64.b64encode(kubeconfig(TOKEN)).decode()):
        assert part not in text
    assert "multikueue-a" in text


def test_a_kind_without_objects_is_known_and_one_that_may_not_be_read_is_not(
    hub: Hub, admin: Driver, dumped: str, tmp_path: Path
) -> None:
    kinds = [one["kind"] for one in lists_in(dumped)]
    assert {"AddOnPlacementScoreList", "SecretList", "WorkloadList"} <= set(kinds)
    content = hub.kubeconfig()
    content["users"][0]["user"]["token"] = hub.add_user("nobody", groups=[])
    (tmp_path / "nobody").write_text(yaml.safe_dump(content))
    done = run("dump", f"--kubeconfig={tmp_path / 'nobody'}")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("missing rights: ask an admin to bind placement-ac's viewer roles to you")
    assert done.stderr.endswith("; the dump does not contain these kinds\n")


def test_the_controllers_lease_is_in_the_dump_and_no_other(admin: Driver, login: str, tmp_path: Path) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/kueue-system/leases"
    for name in ("placement-ac", "other"):
        admin.ask("POST", leases, {"metadata": {"name": name}, "spec": {"holderIdentity": name}})
    path = tmp_path / "hub.yaml"
    path.write_text(run("dump", login).stdout)
    [found] = [one for one in lists_in(str(path)) if one["kind"] == "LeaseList"]
    assert [one["metadata"]["name"] for one in found["items"]] == ["placement-ac"]


def test_what_the_dump_lacks_is_unknown(dumped: str, tmp_path: Path) -> None:
    lists = [one for one in lists_in(dumped) if one["kind"] != f"{CONFIG}List"]
    path = tmp_path / "less.yaml"
    path.write_text(yaml.dump_all(lists, Dumper=yaml.CSafeDumper))
    done = run("explain", "cluster", "a", "-o", "json", f"--from-dump={path}")
    assert "Kueue's list is unknown: the dump holds no multikueueconfigs.kueue.x-k8s.io" in done.output


def raw_secret(**data: str) -> dict[str, Any]:
    made: dict[str, Any] = secret("multikueue-a")
    annotations = {LAST_APPLIED: "top-secret", "note": "kept"}
    return made | {"data": data, "metadata": made["metadata"] | {"annotations": annotations}}


def test_the_values_of_a_secret_are_replaced() -> None:
    valid = base64.b64encode(kubeconfig(TOKEN)).decode()
    found = redacted(SECRET, raw_secret(kubeconfig=valid, other="dG9wLXNlY3JldA=="))
    assert base64.b64decode(found["data"]["other"]) == b"redacted"
    assert b"https://redacted.invalid" in base64.b64decode(found["data"]["kubeconfig"])
    assert found["metadata"]["annotations"] == {"note": "kept"}


def test_a_kubeconfig_that_is_refused_stays_one() -> None:
    found = redacted(SECRET, raw_secret(kubeconfig="eA=="))
    assert base64.b64decode(found["data"]["kubeconfig"]) == b"redacted"
