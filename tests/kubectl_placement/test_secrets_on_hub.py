"""No command that reads a hub, or a dump of one, prints what is in a Secret."""

import base64
import json
from pathlib import Path

import pytest

from placement_lab.standins.manifests import samples
from tests.support import builders, commands
from tests.support.builders import jwt
from tests.support.driver import CORE, KUEUE, OCM, Driver

COMMANDS = [
    ["status"],
    ["status", "-o", "wide"],
    ["status", "-o", "json"],
    ["explain", "check", "p"],
    ["explain", "cluster", "a", "-o", "wide"],
    ["explain", "cluster", "broken", "-o", "json"],
    ["plan", "-f", str(samples() / "placement-demo2-1.yaml")],
    ["plan", "-f", str(samples() / "placement-demo2-1.yaml"), "-o", "json"],
    ["doctor"],
    ["doctor", "-o", "json"],
    ["status", "-o", "mermaid"],
]
DUMPED = (
    f"{CORE}/secrets",
    f"{KUEUE}/v1beta2/admissionchecks",
    f"{OCM}/placements",
    f"{OCM}/placementdecisions",
)


@pytest.fixture
def secrets(admin: Driver) -> list[str]:
    """A check of two clusters: one kubeconfig is valid, the other one is refused."""
    admin.check("p")
    admin.placement("p")
    admin.decide("p", "a", "broken")
    token = jwt("top-secret")
    valid, refused = builders.kubeconfig(token), b"users: [{user: {password: hunter2-hunter2}}]"
    for name, text in (("a", valid), ("broken", refused)):
        admin.secret(f"multikueue-{name}", value=base64.b64encode(text).decode())
    texts = [token, token.split(".")[1], "hunter2-hunter2", admin.hub.token]
    return texts + [base64.b64encode(text).decode() for text in (valid, refused)]


def test_no_command_prints_a_secret(
    admin: Driver, kubeconfig: Path, secrets: list[str], tmp_path: Path
) -> None:
    dumps = [tmp_path / f"{number}.json" for number in range(len(DUMPED))]
    for path, file in zip(DUMPED, dumps, strict=True):
        file.write_text(json.dumps(admin.ask("GET", path)))
    for words in COMMANDS:
        for source in ([f"--kubeconfig={kubeconfig}"], [f"--from-dump={file}" for file in dumps]):
            run = commands.run(*words, *source)
            assert run.exception is None or isinstance(run.exception, SystemExit), run.output
            assert run.output, words
            assert [secret for secret in secrets if secret in run.output] == [], words
