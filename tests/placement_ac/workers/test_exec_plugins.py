"""The admin's file of credential plugins, which of them serves a ClusterProfile, and running one."""

import asyncio
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from placement_ac.core.api.errors import BadSettings
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.kube.exec_plugin import MAX_OUTPUT_BYTES, ExecCredentials
from placement_ac.workers.exec_plugins import (
    AccessProviders,
    ExecConfig,
    OfferedProvider,
    OfferedProviders,
    run,
)
from tests.support.exec_plugins import BETA, TOKEN, V1, Plugin, exec_credential
from tests.support.workers import Raw

EXEC: Raw = {"apiVersion": V1, "command": "/plugins/creds"}


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("key", ["providers", "accessProviders"])
def test_a_file_as_cluster_inventory_and_kueue_have_it(tmp_path: Path, key: str) -> None:
    spec = EXEC | {"args": ["--a"], "env": [{"name": "E", "value": "1"}], "provideClusterInfo": True}
    provider = {"name": "ocm", "execConfig": spec | {"interactiveMode": "Never", "installHint": "get it"}}
    (found,) = AccessProviders.load(write(tmp_path / "p.json", {key: [provider]})).providers
    assert (found.name, found.exec_config.command, found.exec_config.args) == (
        "ocm",
        "/plugins/creds",
        ("--a",),
    )
    assert [(v.name, v.value) for v in found.exec_config.env] == [("E", "1")]
    assert found.exec_config.provide_cluster_info


def test_a_file_in_yaml(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(yaml.safe_dump({"providers": [{"name": "a", "execConfig": EXEC}]}))
    assert [p.name for p in AccessProviders.load(tmp_path / "p.yaml").providers] == ["a"]


@pytest.mark.parametrize(
    ("content", "expected_text"),
    [
        pytest.param({}, "providers: Field required", id="nothing"),
        pytest.param(
            {"providers": [{"name": "a", "execConfig": {"apiVersion": V1, "command": ""}}]},
            "providers.0.execConfig.command: String should have at least 1 character",
            id="an empty command",
        ),
        pytest.param(
            {"providers": [{"name": "a", "execConfig": EXEC | {"apiVersion": TOKEN}}]},
            "providers.0.execConfig.apiVersion: Input should be 'client.authentication.k8s.io/v1'",
            id="another API",
        ),
        pytest.param(
            {"providers": [{"name": "a", "execConfig": EXEC | {"arg": [TOKEN]}}]},
            "providers.0.execConfig.arg: Extra inputs are not permitted",
            id="a typing error",
        ),
        pytest.param(
            {"providers": [{"name": "a", "execConfig": EXEC, "profileSourcedCLIArgsPolicy": "Append"}]},
            "providers.0.profileSourcedCLIArgsPolicy: Input should be '' or 'Ignore'",
            id="arguments from profiles",
        ),
        *(
            pytest.param(
                {"providers": [{"name": "a", "execConfig": EXEC, "allowedServerSuffixes": suffixes}]},
                f"providers.0.allowedServerSuffixes{why}",
                id=name,
            )
            for name, suffixes, why in (
                ("a list of no servers", [], ": Tuple should have at least 1 item"),
                ("null for servers", None, ": Input should be a valid tuple"),
                ("one server that is no list", TOKEN, ": Input should be a valid tuple"),
                ("a server that is no text", [7], ".0: Input should be a valid string"),
                (
                    "a URL for a server",
                    [".example.com", f"https://{TOKEN}"],
                    ": write a host name, a domain such as .example.com or an IP address: entry 2 of",
                ),
            )
        ),
    ],
)
def test_an_error_in_the_file_names_its_field(tmp_path: Path, content: object, expected_text: str) -> None:
    path = write(tmp_path / "p.json", content)
    with pytest.raises(BadSettings) as error:
        AccessProviders.load(path)
    assert str(error.value).startswith(f"access-providers: {path}: {expected_text}")
    assert TOKEN not in str(error.value)


def test_the_servers_that_a_file_allows(tmp_path: Path) -> None:
    """The first provider of a name counts, as when one is chosen."""
    b, first, again = ({"name": name, "execConfig": EXEC} for name in ("b", "a", "a"))
    file = {"providers": [b, first | {"allowedServerSuffixes": [".x", "10.0.0.1"]}, again]}
    found = AccessProviders.load(write(tmp_path / "p.json", file)).allowed_servers
    assert list(found.items()) == [("b", ()), ("a", (".x", "10.0.0.1"))]


def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"p\.json cannot be read: No such file"):
        AccessProviders.load(tmp_path / "p.json")
    (tmp_path / "p.json").write_text(f"}}{{{TOKEN}")
    with pytest.raises(BadSettings, match=r"p\.json: it is not YAML: line 1: [^{}]*$"):
        AccessProviders.load(tmp_path / "p.json")


def providers(*names: str) -> AccessProviders:
    return AccessProviders.model_validate(
        {"providers": [{"name": name, "execConfig": EXEC} for name in names]}
    )


A, B, OLD = (
    OfferedProvider(name="a"),
    OfferedProvider(name="b"),
    OfferedProvider(name="a", cluster={"server": "old"}),
)


@pytest.mark.parametrize(
    ("file", "offers", "chosen"),
    [
        pytest.param(("b", "a"), OfferedProviders(access_providers=(A, B)), B, id="the file's order counts"),
        pytest.param(("c", "a"), OfferedProviders(access_providers=(A, B)), A, id="the first that both know"),
        pytest.param(("a",), OfferedProviders(credential_providers=(OLD,)), OLD, id="by its old name"),
        pytest.param(
            ("a",),
            OfferedProviders(access_providers=(A,), credential_providers=(OLD,)),
            A,
            id="the new one first",
        ),
        pytest.param(("c",), OfferedProviders(access_providers=(A, B)), None, id="none"),
    ],
)
def test_which_provider_serves_a_profile(
    file: tuple[str, ...], offers: OfferedProviders, chosen: OfferedProvider | None
) -> None:
    found = providers(*file).choose(offers)
    assert (found and found[1]) == chosen


CLUSTER: Raw = {
    "server": "https://w",
    "certificate-authority-data": "Q0E=",
    "extensions": [
        {"name": "other", "extension": {"x": 1}},
        {"name": "client.authentication.k8s.io/exec", "extension": {"clusterName": "w"}},
    ],
}


async def test_a_plugin_gives_credentials(plugin: Plugin) -> None:
    gives = exec_credential(
        token=TOKEN, clientCertificateData="C", clientKeyData="K", expirationTimestamp="2030-01-01T00:00:00Z"
    )
    got = await run(ExecConfig(api_version=V1, command=plugin(f"echo '{gives}'")), CLUSTER)
    assert got == ExecCredentials(
        token=TOKEN,
        client_certificate_data="C",
        client_key_data="K",
        expiration_timestamp=datetime(2030, 1, 1, tzinfo=UTC),
    )
    assert TOKEN not in repr(got)


@pytest.mark.parametrize("expected_text", [True, False])
async def test_a_plugin_gets_the_cluster_if_the_admin_wants_it(
    plugin: Plugin, tmp_path: Path, expected_text: bool
) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $HOME $E" > {tmp_path}/env; exit 3'
    command = ExecConfig.model_validate(
        EXEC
        | {
            "command": plugin(script),
            "args": ["--x"],
            "env": [{"name": "E", "value": "1"}],
            "provideClusterInfo": expected_text,
        }
    )
    await run(command, CLUSTER)
    cluster = {"server": "https://w", "certificate-authority-data": "Q0E=", "config": {"clusterName": "w"}}
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False} | ({"cluster": cluster} if expected_text else {}),
    }
    assert (tmp_path / "env").read_text() == f"--x {os.environ['HOME']} 1\n"


@pytest.mark.parametrize(
    ("script", "why"),
    [
        pytest.param(
            f"echo {TOKEN}; echo {TOKEN} >&2; exit 3", "ended with code 3: run it by hand", id="fails"
        ),
        pytest.param(f"echo {TOKEN}", "gave no ExecCredential that can be read: the whole", id="neither"),
        pytest.param(f"echo '{{{TOKEN}'", "gave neither JSON nor YAML", id="half of it"),
        pytest.param(
            f"echo '[\"{TOKEN}\"]'", "gave no ExecCredential that can be read: the whole", id="a list"
        ),
        pytest.param(
            f'echo \'{{"apiVersion": "{V1}", "kind": "{TOKEN}"}}\'',
            "gave no ExecCredential that can be read: kind",
            id="another kind",
        ),
        pytest.param(f"echo '{exec_credential(BETA, token=TOKEN)}'", "does not speak", id="old"),
        pytest.param(
            f"echo '{exec_credential(token=TOKEN, expirationTimestamp=TOKEN)}'",
            "gave no ExecCredential that can be read: status.expirationTimestamp",
            id="no time",
        ),
        pytest.param(
            f"yes {TOKEN}", "was stopped: it printed more than 1 MB; run it by hand", id="writes without end"
        ),
        pytest.param(
            f"head -c {MAX_OUTPUT_BYTES} /dev/zero; exec >&-; sleep 0.1; exit 3",
            "ended with code 3",
            id="the most it may print",
        ),
    ],
)
async def test_an_error_of_a_plugin_is_reported_without_its_output(
    plugin: Plugin, capfd: pytest.CaptureFixture[str], script: str, why: str
) -> None:
    command = ExecConfig(api_version=V1, command=plugin(script))
    got = await run(command, CLUSTER)
    assert isinstance(got, Unusable)
    assert got.why.startswith(f"plugin {command.command} {why}")
    assert TOKEN not in got.why
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("command", "why"),
    [("/no/such/plugin", "No such file or directory"), ("/", "Permission denied"), ("a\0b", "its arguments")],
)
async def test_a_plugin_that_cannot_be_started_is_reported(command: str, why: str) -> None:
    got = await run(ExecConfig(api_version=V1, command=command), CLUSTER)
    assert isinstance(got, Unusable)
    assert why in got.why


def test_a_plugin_that_hangs_is_killed_with_all_that_it_started(plugin: Plugin, tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"

    async def too_long() -> None:
        async with asyncio.timeout(3.0):
            await run(ExecConfig(api_version=V1, command=plugin(script)), CLUSTER)

    began = time.monotonic()
    with pytest.raises(TimeoutError):
        asyncio.run(too_long())
    assert time.monotonic() - began < 30
    pid = int((tmp_path / "pid").read_text())
    end = time.monotonic() + 5
    while Path(f"/proc/{pid}/stat").exists() and " Z " not in Path(f"/proc/{pid}/stat").read_text():
        assert time.monotonic() < end, "it still runs"
        time.sleep(0.01)
