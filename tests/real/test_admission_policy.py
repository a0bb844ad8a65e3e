"""The policy for the controller's account, on a real hub: OCM's CRDs must be there, OCM need not run.

The policy is installed under the tests' name and for an account of that name, and nothing is written with
it: each write is a dry run, of an object that an admin has created if it is a change or a delete.
"""

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest
import yaml

from placement_ac.kube.login import Login
from tests.real.clusters import NAME, until
from tests.support.admission_policy import ACCEPTED, FILE, WRITES, Object, Write

USER = f"system:serviceaccount:kueue-system:{NAME}"
SECONDS = 30.0
"""In which an API server has the policy."""
Kubectl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def kubectl(pytestconfig: pytest.Config, hub_login: Login) -> Kubectl:
    """Runs kubectl with the hub's kubeconfig, with an object as its input; skipped as `hub_login` is."""
    hub = pytestconfig.getoption("hub_kubeconfig")

    def run(*words: str, given: Object | None = None) -> "subprocess.CompletedProcess[str]":
        command = ["kubectl", f"--kubeconfig={hub}", *words]
        return subprocess.run(
            command, input=json.dumps(given), capture_output=True, text=True, timeout=60, check=False
        )

    return run


@pytest.fixture(scope="session")
def _policy(kubectl: Kubectl) -> Iterator[None]:
    for one in yaml.safe_load_all(FILE.read_text("utf-8")):
        text = json.dumps(one).replace(":placement-ac'", f":{NAME}'")
        made = json.loads(text)
        made["metadata"]["name"] = NAME
        made["spec"] |= {"policyName": NAME} if "policyName" in made["spec"] else {}
        done = kubectl("apply", "--filename=-", given=made)
        assert done.returncode == 0, done.stderr
    write, wanted = WRITES["another's account"]
    try:
        until(lambda: wanted in answer(kubectl, write), SECONDS)
        yield
    finally:
        for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
            kubectl("delete", kind, NAME)


def answer(kubectl: Kubectl, write: Write) -> str:
    """Return what the API server refuses a write with, or ACCEPTED."""
    account = (f"--as={USER}", "--as-group=system:masters", "--dry-run=server")
    if write.after is None:
        done = kubectl("delete", "--filename=-", "--wait=false", *account, given=write.before)
    else:
        applied = ("apply", "--server-side", "--force-conflicts", "--field-manager=placement-ac")
        done = kubectl(*applied, "--filename=-", *account, given=write.after)
    return done.stderr if done.returncode else ACCEPTED


@pytest.mark.usefixtures("_policy")
@pytest.mark.parametrize("name", WRITES)
def test_an_api_server_lets_the_account_write_what_the_controller_writes_alone(
    kubectl: Kubectl, name: str
) -> None:
    write, wanted = WRITES[name]
    if write.before:
        created = kubectl("create", "--filename=-", given=write.before)
        assert created.returncode == 0, created.stderr
    try:
        got = answer(kubectl, write)
    finally:
        if write.before:
            kubectl("delete", "--filename=-", given=write.before)
    assert wanted in got if wanted else got == ACCEPTED, got
