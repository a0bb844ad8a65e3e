"""`placement-ac graph` on a hub: what it draws, where it writes it, what it says when it cannot."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from placement_ac.cli.main import main
from placement_lab.hub import Hub
from tests.support.driver import Driver

KUBECONFIG = "kubeconfig"


@pytest.fixture
def run(hub: Hub, admin: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """A shell in a folder with a kubeconfig, and a check that has two clusters."""
    monkeypatch.chdir(tmp_path)
    hub.write_kubeconfig(tmp_path / KUBECONFIG)
    admin.check("demo")
    admin.select("demo", ("a", 30), ("b", 70))
    return CliRunner()


MERMAID = """flowchart LR
    n0["AdmissionCheck<br/>demo<br/>Active=Unknown"]
    n1["Placement<br/>kueue-system/demo"]
    n2["MultiKueueConfig<br/>none<br/>nothing is listed"]:::missing
    n3(["cluster<br/>b<br/>will be listed"]):::selected
    n4(["cluster<br/>a<br/>will be listed"]):::selected
    n0 --> n1
    n1 -.-> n2
    n1 -.->|"rank 1 · score 70"| n3
    n1 -.->|"rank 2 · score 30"| n4
"""


def test_mermaid_to_stdout(run: CliRunner) -> None:
    result = run.invoke(main, ["graph", "demo", "--kubeconfig", KUBECONFIG])
    assert (result.exit_code, result.stdout.partition("    classDef")[0]) == (0, MERMAID)


def test_a_page_to_a_file(run: CliRunner) -> None:
    words = ["graph", "-o", "html", "--output-file", "page.html", "--kubeconfig", KUBECONFIG]
    result = run.invoke(main, words)
    assert (result.exit_code, result.stdout) == (0, "")
    page = Path("page.html").read_text("utf-8")
    data = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    status = json.loads(run.invoke(main, ["status", "-o", "json", "--kubeconfig", KUBECONFIG]).stdout)
    assert [detail["status"] for detail in data["details"]] == status["checks"]
    assert data["hub"]["server"].startswith("http")


WRONG = [
    pytest.param(["graph", "nix"], 1, "there is no AdmissionCheck nix that placement-ac answers", id="check"),
    pytest.param(["graph", "--output-file", "no/such/folder"], 1, "no/such/folder: No such file", id="file"),
    pytest.param(["graph", "-o", "png"], 2, "'png' is not one of 'mermaid', 'html'", id="form"),
]


@pytest.mark.parametrize(("words", "code", "expected"), WRONG)
def test_errors(run: CliRunner, words: list[str], code: int, expected: str) -> None:
    result = run.invoke(main, [*words, "--kubeconfig", KUBECONFIG])
    assert (result.exit_code, expected in result.stderr) == (code, True)
