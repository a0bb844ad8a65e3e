"""Names, labels and messages of others cannot control a terminal, whichever command prints them."""

import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml
from rich.text import Text

from kubectl_placement.cli.console import ShownConsole
from kubectl_placement.cli.output import plain_table, safe_text
from placement_ac.cli.documents import in_json
from placement_ac.cli.terminal import controls_shown
from placement_ac.core.api.printable import NOT_SHOWN, one_line, visible
from placement_ac.core.api.to_yaml import to_yaml
from placement_lab.hub import Hub
from tests.support import commands
from tests.support.driver import Driver

EVIL = "a\u202eb\u200bc\x1b[31md\x9be\x07f\r\u2066g\ufeffh\U000e0041"
SHOWN = r"a\u202eb\u200bc\x1b[31md\x9be\x07f\x0d\u2066g\ufeffh\U000e0041"


def test_control_characters_are_shown_escaped() -> None:
    assert visible(EVIL) == SHOWN
    kept = "two\nlines\tüber ✓ 日本 └──"
    assert visible(kept) == kept
    assert one_line("a\r\nb\tc\x1b") == r"a b c\x1b"


def test_documents_keep_their_values() -> None:
    document = {"message": EVIL, EVIL: ["ok", 1]}
    for text, read in (
        (in_json(json.dumps(document, ensure_ascii=False)), json.loads),
        (to_yaml(document), yaml.safe_load),
    ):
        assert not NOT_SHOWN.search(text), text
        assert read(text) == document


def test_rich_sends_its_colours_and_nothing_of_others() -> None:
    out = io.StringIO()
    console = ShownConsole(file=out, force_terminal=True, color_system="standard", width=200)
    table = plain_table("NAME")
    table.add_row(safe_text(EVIL, "red"))
    console.print(table)
    console.print(Text(EVIL))
    assert "\x1b[31m" + SHOWN in out.getvalue(), "a colour of ours"
    assert not NOT_SHOWN.search(re.sub("\x1b\\[(0|1|31)m", "", out.getvalue().replace(SHOWN, "")))


def test_streams_show_what_python_and_libraries_print(capsys: pytest.CaptureFixture[str]) -> None:
    with controls_shown():
        print(EVIL)  # noqa: T201  # this is what is tested
        sys.stderr.writelines([EVIL, "\n"])
    assert tuple(capsys.readouterr()) == (f"{SHOWN}\n", f"{SHOWN}\n")


@pytest.mark.embedded("a real API server refuses some of these names")
def test_every_command_shows_what_others_wrote(hub: Hub, admin: Driver, tmp_path: Path) -> None:
    hub.write_kubeconfig(tmp_path / "kubeconfig")
    admin.check("p")
    admin.select("p", "a")
    condition = {"type": "Active", "status": "False", "reason": "Evil", "message": EVIL}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    path = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks/p/status"
    admin.ask("PATCH", path, {"status": {"conditions": [condition]}}, "merge")
    manifest = {
        "apiVersion": "cluster.open-cluster-management.io/v1beta1",
        "kind": "Placement",
        "metadata": {"name": "new", "namespace": "kueue-system", "annotations": {"note": EVIL}},
        "spec": {"clusterSets": [EVIL]},
    }
    (tmp_path / "new.yaml").write_text(json.dumps(manifest))
    of_status = [["status", "-o", form] for form in ("json", "yaml", "mermaid")]
    others = [["explain", "check", "p"], ["doctor"], ["plan", "-f", str(tmp_path / "new.yaml")]]
    for words in (["status"], *of_status, *others, ["status", EVIL]):
        done = commands.run(*words, "--kubeconfig", str(tmp_path / "kubeconfig"))
        assert done.stdout + done.stderr, words
        assert not NOT_SHOWN.search(done.stdout + done.stderr), repr(done.stdout + done.stderr)
