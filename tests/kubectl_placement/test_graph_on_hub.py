"""`placement-ac graph` on a hub: what it draws, where it writes it, what it says when it cannot."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Run
from tests.support.driver import Driver


@pytest.fixture
def run(admin: Driver, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs commands in a folder with nothing but a kubeconfig, on a hub with a check of two clusters."""
    monkeypatch.chdir(tmp_path)
    admin.check("demo")
    admin.select("demo", ("a", 30), ("b", 70))
    return run


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


def test_mermaid_to_stdout(run: Run) -> None:
    result = run("graph", "demo")
    assert (result.exit_code, result.stdout.partition("    classDef")[0]) == (0, MERMAID)


def test_a_page_to_a_file(run: Run) -> None:
    result = run("graph", "-o", "html", "--output-file", "page.html")
    assert (result.exit_code, result.stdout) == (0, "")
    page = Path("page.html").read_text("utf-8")
    data = json.loads(page.partition('type="application/json">')[2].partition("</script>")[0])
    status = json.loads(run("status", "-o", "json").stdout)
    assert [detail["status"] for detail in data["details"]] == status["checks"]
    assert data["hub"]["server"].startswith("http")


WRONG = [
    pytest.param(["graph", "nix"], 1, "there is no AdmissionCheck nix that placement-ac answers", id="check"),
    pytest.param(["graph", "--output-file", "no/such/folder"], 1, "no/such/folder: No such file", id="file"),
    pytest.param(["graph", "-o", "png"], 2, "'png' is not one of 'mermaid', 'html'", id="form"),
]


@pytest.mark.parametrize(("words", "code", "expected"), WRONG)
def test_errors(run: Run, words: list[str], code: int, expected: str) -> None:
    result = run(*words)
    assert (result.exit_code, expected in result.stderr) == (code, True)
