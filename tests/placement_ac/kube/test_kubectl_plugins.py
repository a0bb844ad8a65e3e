"""Our login compared with kubectl's: credential plugins."""

import json
from typing import Any

import pytest

from tests.support.exec_plugins import BETA, V1, exec_credential, gives
from tests.support.kubectl_shell import Case, Shell

pytestmark = pytest.mark.long


def execs(script: str, **fields: Any) -> Case:
    """Return a case with a plugin; in the script, {pair} stands for a client certificate and its key."""

    def write(shell: Shell) -> None:
        leaf = shell.reach.clients.issue_cert("me@example.com", common_name="plugin")
        both = (leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode())
        certificate = exec_credential(clientCertificateData=both[0], clientKeyData=both[1])
        command = shell.plugin(script.replace("{pair}", certificate.replace("\\n", "\\\\n")))
        spec = {"apiVersion": V1, "command": command, "interactiveMode": "Never"} | fields
        shell.config({"exec": {name: value for name, value in spec.items() if value is not None}})

    return write


def as_yaml(*lines: str) -> str:
    """Return a script that prints these lines."""
    return "cat <<'EOF'\n" + "\n".join(lines) + "\nEOF"


GIVES = gives("from-the-plugin")
PLUGINS: dict[str, Case] = {
    "a token": execs(GIVES),
    "a token, v1beta1 without interactiveMode": execs(
        f"echo '{exec_credential(BETA, token='t')}'", apiVersion=BETA, interactiveMode=None
    ),
    "env: null, args: null": execs(GIVES, env=None, args=None),
    "arguments and variables": execs(
        f"echo '{exec_credential(token='x')}' | sed \"s/x/$1-$E/\"",
        args=["a"],
        env=[{"name": "E", "value": "e"}],
    ),
    "a variable without a value": execs(GIVES, env=[{"name": "E", "value": ""}]),
    "a variable without a name": execs(GIVES, env=[{"name": "", "value": "e"}]),
    "a certificate": execs("echo '{pair}'"),
    "a message on stderr beside a token": execs(f"echo hello >&2; {GIVES}"),
    "not installed": execs(GIVES, command="no-such-cloud-cli"),
    "no such file": execs(GIVES, command="./missing"),
    "no right to run it": execs(GIVES, command="./config"),
    "a path relative to the kubeconfig": execs(GIVES, command="./plugin"),
    "fails": execs("echo 'session has expired' >&2; exit 255"),
    "fails after it gave a token": execs(f"{GIVES}; exit 1"),
    "gives nothing": execs("true"),
    "gives no JSON": execs("echo hello"),
    "prints before its token": execs(f"echo hello; {GIVES}"),
    "gives no status": execs(f"echo '{json.dumps({'apiVersion': V1, 'kind': 'ExecCredential'})}'"),
    "gives an empty status": execs(f"echo '{exec_credential()}'"),
    "gives half a pair": execs(f"echo '{exec_credential(clientKeyData='k')}'"),
    "gives a certificate that is none": execs(
        f"echo '{exec_credential(clientKeyData='k', clientCertificateData='c')}'"
    ),
    "gives YAML": execs(as_yaml(f"apiVersion: {V1}", "kind: ExecCredential", "status:", "  token: t")),
    "gives YAML, the first document of two": execs(
        as_yaml("---", f"{{apiVersion: {V1},", "status: {token: t}}", "---", "a: b")
    ),
    "gives YAML with a time and no kind": execs(
        as_yaml(f"apiVersion: {V1}", "status: {token: t, expirationTimestamp: 2100-01-01T00:00:00Z}")
    ),
    "gives YAML whose token is a number": execs(as_yaml(f"apiVersion: {V1}", "status: {token: 1e3}")),
    "gives YAML that begins like JSON": execs(as_yaml(f"{{apiVersion: {V1}, status: {{token: t}}}}")),
    "gives no YAML": execs(as_yaml("a: b: c")),
    "gives JSON without a kind": execs(f"echo '{json.dumps({'apiVersion': V1, 'status': {'token': 't'}})}'"),
    "gives a kind of null": execs(
        f"echo '{json.dumps({'apiVersion': V1, 'kind': None, 'status': {'token': 't'}})}'"
    ),
    "gives no apiVersion": execs(
        f"echo '{json.dumps({'kind': 'ExecCredential', 'status': {'token': 't'}})}'"
    ),
    "gives a token of null": execs(f"echo '{json.dumps({'apiVersion': V1, 'status': {'token': None}})}'"),
    "gives another version": execs(f"echo '{exec_credential(BETA, token='t')}'"),
    "gives another kind": execs(f"echo '{exec_credential(token='t')}' | sed s/ExecCredential/Pod/"),
    "of another version": execs(GIVES, apiVersion="client.authentication.k8s.io/v1alpha1"),
    "without a version": execs(GIVES, apiVersion=None),
    "without a command": execs(GIVES, command=None),
    "v1 without interactiveMode": execs(GIVES, interactiveMode=None),
    "an unknown interactiveMode": execs(GIVES, interactiveMode="Sometimes"),
    "needs a terminal": execs(GIVES, interactiveMode="Always"),
    "may have a terminal": execs(GIVES, interactiveMode="IfAvailable"),
    "beside auth-provider": lambda shell: shell.config(
        {
            "exec": {"apiVersion": V1, "command": shell.plugin(GIVES), "interactiveMode": "Never"},
            "auth-provider": {"name": "oidc", "config": {}},
        }
    ),
    "beside a token": lambda shell: shell.config(
        {
            "token": "token",
            "exec": {"apiVersion": V1, "command": shell.plugin("exit 3"), "interactiveMode": "Never"},
        }
    ),
}


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plugin_is_run_as_by_kubectl(shell: Shell, name: str) -> None:
    shell.reaches_the_same(PLUGINS[name])
