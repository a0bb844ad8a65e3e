"""No token of a full run appears anywhere: not in the output, and not on the hub."""

import base64
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import quick
from tests.support.credentials import ACCOUNTS, PERMISSIONS, Stage, open_stage
from tests.support.driver import CORE, NS, Controllers, Driver
from tests.support.jobs import soon


class Heard:
    """Every secret that was ever there: the Secrets' values, and the tokens in them."""

    def __init__(self) -> None:
        self.values: set[str] = set()

    def listen(self, *hubs: Driver) -> None:
        for driver in hubs:
            for secret in driver.ask("GET", f"{CORE}/secrets")["items"]:
                for encoded in (secret.get("data") or {}).values():
                    text = base64.b64decode(encoded).decode()
                    self.values |= {encoded, text} | ({_token_in(text)} if text.startswith("{") else set())

    def in_(self, text: str) -> list[str]:
        return [value[:20] for value in self.values if len(value) > 20 and value in text]


def _token_in(kubeconfig: str) -> str:
    return str(json.loads(kubeconfig)["users"][0]["user"]["token"])


@pytest.fixture
def stage(admin: Driver, controllers: Controllers) -> Iterator[Stage]:
    with open_stage(admin, controllers, ["a", "b"]) as stage:
        admin.check("p")
        admin.multikueue_check("mk", "p")
        admin.placement("p")
        stage.select("a", "b")
        yield stage


@pytest.mark.long
def test_a_full_run_shows_no_token(stage: Stage, admin: Driver, tmp_path: Path) -> None:
    """Made, listed, renewed, refused by the hub and by a worker, left out, removed, stopped: a whole life."""
    heard, printed = Heard(), tmp_path / "printed"
    command = [sys.executable, "-m", quick.__name__, "run", "--kubeconfig", str(stage.controllers.kubeconfig)]
    flags = {
        "credentials-provision": "managed-serviceaccount",
        "frameworks": "batch/job",
        "credentials-probe": "true",
        "log-level": "debug",
        "settle": "0",
    }
    with (
        printed.open("wb") as output,
        subprocess.Popen(
            [*command, *(f"--{name}={value}" for name, value in flags.items())], stdout=output, stderr=output
        ) as process,
    ):
        stage.until_connected("a", "b")
        heard.listen(admin)
        before = stage.token("a")
        stage.ocm.refresh("a")
        stage.until_renewed("a", before)
        heard.listen(admin)
        _let_a_webhook_quote_the_secret(stage, admin)
        heard.listen(admin)
        stage.fleet.kill("b")
        before = stage.token("a")
        stage.ocm.revoke("a")
        stage.until_renewed("a", before)
        heard.listen(admin)
        admin.ask(
            "PATCH",
            f"{CORE}/namespaces/{NS}/secrets/placement-ac-a",
            {"data": {"kubeconfig": "Zm9v"}},
            "merge",
        )
        stage.until_current("a")
        stage.select("b")
        soon(lambda: stage.account("a") is None and stage.secret("a") is None)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    output_found = printed.read_text()
    assert "refused" in output_found
    assert heard.in_(output_found) == []
    public = [
        admin.kueue("admissionchecks"),
        admin.kueue("multikueueconfigs"),
        admin.kueue("multikueueclusters"),
        f"{CORE}/namespaces/default/events",
        f"{ACCOUNTS}/managedserviceaccounts",
        f"{PERMISSIONS}/clusterpermissions",
    ]
    assert heard.in_("\n".join(json.dumps(admin.ask("GET", path)) for path in public)) == []


def _let_a_webhook_quote_the_secret(stage: Stage, admin: Driver) -> None:
    """The next write of the Secret is refused, with words that quote all of it."""
    before = stage.token("a")
    quoted = f"admission webhook denied {before} and {json.dumps(stage.secret('a'))}"
    body = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": quoted}
    admin.hub.faults.add("PATCH", "/secrets/placement-ac-a$", status=403, body=body)
    stage.ocm.refresh("a")
    stage.until_renewed("a", before)
