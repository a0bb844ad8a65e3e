"""The documentation site: it builds, covers the whole code, and makes no requests to other hosts."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from placement_ac.cli.main import COMMANDS
from placement_ac.config.layout import as_file
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings, default_of
from placement_ac.core.api.constants import EVENTS, REASONS
from placement_ac.observability.metric_definitions import DEFINITIONS, MetricDefinition
from tests.support.documents import ROOT, TROUBLESHOOTING, lines_of
from website import generated
from website.examples import example
from website.hooks import FOREIGN
from website.markdown import for_mkdocs, relinked, section, tables, without_contents

DASHED = [name.replace("_", "-") for name in Settings.model_fields]


# -- the whole site


@pytest.mark.long
def test_the_site_is_built_without_a_warning_and_asks_no_other_host(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site"],
        check=False,
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert (built.returncode, built.stderr) == (0, "")
    pages = {path.relative_to(tmp_path / "site").as_posix(): path for path in tmp_path.rglob("*.html")}
    texts = {name: path.read_text("utf-8") for name, path in pages.items()}
    assert {name.replace(".md", ".html") for name in generated.PAGES} <= texts.keys()
    styles = {path.name: path.read_text("utf-8") for path in tmp_path.rglob("*.css")}
    assert {
        name: found[0] for name, text in (texts | styles).items() if (found := FOREIGN.search(text))
    } == {}
    assert [name for name, text in texts.items() if 'class="mermaid"' in text] == [], "drawn by a script"
    drawn = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix(): path.read_text("utf-8").count(
            "```mermaid"
        )
        for path in ROOT.glob("docs/**/*.md")
    }
    assert {name: texts[name].count('<figure class="picture">') for name in drawn} == drawn


@pytest.mark.parametrize(
    ("html", "asks"),
    [
        ('<script src="https://cdn.example/x.js">', True),
        ("<script src=//cdn.example/x.js>".replace("=//", '="//').replace("js>", 'js">'), True),
        ('<link rel="stylesheet" href="https://fonts.example/css">', True),
        ('<img alt="" src="http://example/x.png">', True),
        ("<style>@import 'https://example/x.css';</style>", True),
        ("<style>a { background: url(https://example/x.png) }</style>", True),
        ('<a href="https://kueue.sigs.k8s.io">Kueue</a>', False),
        ('<script src="assets/x.js"></script><link rel="stylesheet" href="assets/x.css">', False),
        ('<svg xmlns="http://www.w3.org/2000/svg"></svg>', False),
        ("<style>a { mask: url('data:image/svg+xml;charset=utf-8,<svg/>') }</style>", False),
    ],
)
def test_loads_from_another_host_are_found(html: str, asks: bool) -> None:
    assert bool(FOREIGN.search(html)) is asks


def test_every_entry_of_the_navigation_exists() -> None:
    text = (ROOT / "mkdocs.yml").read_text("utf-8")
    paths = re.findall(r"[\w/-]+\.md$", text.partition("\nnav:\n")[2], re.MULTILINE)
    generated_pages = {*generated.PAGES, "samples.md", "contributing.md", "changelog.md"}
    written = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert sorted(paths) == sorted(generated_pages | written)


# -- pages generated from the code


@pytest.mark.parametrize(
    ("page", "items"),
    [
        pytest.param(generated.reasons, list(REASONS), id="reasons"),
        pytest.param(generated.events, list(EVENTS), id="events"),
        pytest.param(generated.metrics, [measure.name for measure in DEFINITIONS], id="metrics"),
        pytest.param(generated.settings, [f"--{name}" for name in DASHED], id="settings"),
        pytest.param(generated.commands, [f"placement-ac {name}" for name in COMMANDS], id="commands"),
        pytest.param(generated.checks, [rule.check for rule in generated.CHECKS], id="checks"),
    ],
)
def test_a_page_has_every_item_of_the_code(page: Callable[[], str], items: list[str]) -> None:
    assert re.findall(r"^## `(.+)`$", page(), re.MULTILINE) == items


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        pytest.param(generated.reasons, ["Condition", "Cause", "Fix", "Example"], id="reasons"),
        pytest.param(generated.events, ["Type", "On", "When", "See them"], id="events"),
        pytest.param(generated.metrics, ["Type", "Labels", "Meaning", "A query"], id="metrics"),
        pytest.param(generated.settings, ["Variable", "Default", "Values", "Meaning"], id="settings"),
        pytest.param(generated.checks, ["Requirement", "Fix"], id="checks"),
    ],
)
def test_every_item_has_these_rows(page: Callable[[], str], wanted: list[str]) -> None:
    for item in page().split("\n## ")[1:]:
        rows = re.findall(r"^\| \*\*(.+?)\*\* \| \S", item, re.MULTILINE)
        assert [name for name in wanted if name not in rows] == [], item


def test_every_command_has_an_example() -> None:
    items = generated.commands().split("\n## ")[1:]
    assert [item.splitlines()[0] for item in items if "Example:  placement-ac " not in item] == []


@pytest.mark.parametrize("reason", REASONS)
def test_the_example_of_a_reason_has_that_reason(reason: str) -> None:
    assert example(reason)[1].reason == reason


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_example_of_a_setting_is_possible_and_not_the_default(name: str) -> None:
    value = generated.SETTINGS_IN_USE[name]
    others = {
        "unlist_after": {"dispatcher": True},
        "avoid_after_failure": {"dispatcher": True},
    }
    Settings.model_validate({**others.get(name, {}), name: value})
    assert value != default_of(name)


def test_a_setting_in_full() -> None:
    page = generated.settings()
    begin = page.index("## `--credentials-validity`")
    meaning = "The lifetime of a token, at least ten minutes. OCM's agent renews it when a fifth is left."
    assert page[begin:].split("\n\n## ")[0].splitlines()[4:] == [
        f"| **Variable** | `{PREFIX}CREDENTIALS_VALIDITY` |",
        "| **Default** | `24h` |",
        "| **Values** | a duration, like `90s` or `1h30m`; at least 600 seconds |",
        f"| **Meaning** | {meaning} |",
        "| **In the settings file** | `credentials: {validity: 12h}` |",
    ]


def test_the_lines_for_the_settings_file_are_yaml() -> None:
    lines = re.findall(r"In the settings file\*\* \| `(.+)` \|", generated.settings())
    wanted = [as_file({name: None}) for name in Settings.model_fields if name != "config"]
    assert [_keys(yaml.safe_load(line)) for line in lines] == [_keys(each) for each in wanted]


def _keys(content: Any) -> list[str]:
    """Return the one key of a settings file, after that of its section."""
    return [key for at in (content, *content.values()) if isinstance(at, dict) for key in at]


@pytest.mark.parametrize("measure", DEFINITIONS, ids=lambda measure: measure.name)
def test_the_query_of_a_metric_is_valid(measure: MetricDefinition) -> None:
    assert promql_parser.parse(generated.query(measure))


# -- Markdown


@pytest.mark.parametrize(
    ("written", "read"),
    [
        pytest.param(
            "1. a\n\n   ```bash\n   b\n   ```\n", "1. a\n\n    ```bash\n    b\n    ```\n", id="fence"
        ),
        pytest.param("- a\n  b\n- c\n", "- a\n    b\n- c\n", id="continued"),
        pytest.param("text:\n- a\n- b\n", "text:\n\n- a\n- b\n", id="after text"),
        pytest.param("- a\n  - b\n", "- a\n    - b\n", id="nested"),
        pytest.param("- a\n\ntext\n", "- a\n\ntext\n", id="ended"),
        pytest.param("```\n- a\n  b\n```\n", "```\n- a\n  b\n```\n", id="in a fence"),
        pytest.param("| `a\\|b` | c \\| d |\n", "| `a|b` | c \\| d |\n", id="table"),
    ],
)
def test_markdown_as_mkdocs_reads_it(written: str, read: str) -> None:
    assert for_mkdocs(written) == read


def test_the_contents_of_a_page_are_left_to_the_site() -> None:
    text = "# A\n\nText:\n\n- [B](#b)\n- [C](#c), [D](#d)\n\nMore.\n\n## B\n\n- [C](#c)\n"
    assert without_contents(text) == "# A\n\nText:\n\nMore.\n\n## B\n\n- [C](#c)\n"


def test_links_of_other_documents_are_led_to_their_pages() -> None:
    text = "[a](docs/a.md#b) [c](https://c) [d](#d) [e](e.md)"
    assert relinked(text, {"docs/a.md": "a.md"}) == "[a](a.md#b) [c](https://c) [d](#d) [e](e.md)"


def test_tables_are_read_by_their_first_code_span() -> None:
    text = "# A\n\n## B\n\n| x | y |\n|---|---|\n| True | `a` \\| 1 |\n| `b` | 2 |\n\n## C\n"
    assert tables(text, "B") == [{"a": ("True", "`a` \\| 1"), "b": ("`b`", "2")}]
    with pytest.raises(KeyError):
        section(text, "D")


# -- troubleshooting, and the page in Chinese


def test_every_symptom_has_a_command_and_is_in_the_list() -> None:
    text = TROUBLESHOOTING.read_text("utf-8")
    symptoms = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert re.findall(r"^- \[(.+?)\]\(#", text, re.MULTILINE) == symptoms
    assert [name for name in symptoms if "```bash\n" not in section(text, name)] == []


def test_every_reason_that_stops_a_queue_is_a_symptom() -> None:
    (rows,) = tables(TROUBLESHOOTING.read_text("utf-8"), "The check is not Active")
    stopping = [name for name in REASONS if example(name)[1].status == "False"]
    assert [name for name in rows if name in REASONS] == stopping


def test_the_commands_in_chinese_are_those_in_english() -> None:
    english = {
        line.split("  #")[0].strip()
        for name in ("laptop", "kind", "hub")
        for line in lines_of((ROOT / f"docs/getting-started/{name}.md").read_text("utf-8"), code=True)
    }
    chinese = (ROOT / "docs" / "zh" / "getting-started.md").read_text("utf-8")
    commands = [
        line.split("  #")[0].strip()
        for line in lines_of(chinese.partition("## 在笔记本上体验")[2], code=True)
        if line.strip()
    ]
    assert len(commands) > 20
    assert [line for line in commands if line not in english] == []
