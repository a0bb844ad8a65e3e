"""The pages in Chinese have all commands, settings, reasons, numbers and links of the English pages."""

import pytest

from tests.support.documents import ROOT
from tests.support.translations import TRANSLATED, Contents, Pages, contents, english_pages

DOCS = ROOT / "docs"
BEHIND = "the page in English has changed: change docs/zh in the same way"


def written() -> Pages:
    pages = {path.relative_to(DOCS).as_posix(): path.read_text("utf-8") for path in DOCS.rglob("*.md")}
    return pages | {"../charts/placement-ac/README.md": ""}


def both(name: str, pages: Pages) -> tuple[Contents, Contents]:
    english = english_pages(pages)
    return contents(f"zh/{name}", pages | english), contents(name, english)


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_page_in_chinese_has_all_of_the_english_page(name: str) -> None:
    chinese, english = both(name, written())
    for part in Contents.__dataclass_fields__:
        assert getattr(chinese, part) == getattr(english, part), f"{part} of docs/zh/{name}: {BEHIND}"


@pytest.mark.parametrize(
    ("name", "before", "after", "part"),
    [
        pytest.param("troubleshooting.md", "--tail 50", "--tail 100", "code", id="command"),
        pytest.param("install.md", "drain-deadline: 2h\n", "drain-deadline: 3h\n", "code", id="manifest"),
        pytest.param("troubleshooting.md", "`NameTaken`", "`NameUsed`", "tables", id="reason"),
        pytest.param("draining.md", "or `ClusterAdded` |", "|", "tables", id="event"),
        pytest.param(
            "install.md", "| `default` | `kueue.x-k8s.io` | `localqueues` |", "| a |", "tables", id="row"
        ),
        pytest.param("install.md", "`--kueue-version`", "`--version-of-kueue`", "spans", id="setting"),
        pytest.param("draining.md", "less than 15 s", "less than 20 s", "numbers", id="number"),
        pytest.param("install.md", "## Sizing\n", "## Sizing\n\n### More\n", "levels", id="section"),
        pytest.param("install.md", "reliability.md#two-replicas", "reliability.md", "links", id="link"),
        pytest.param(
            "dispatcher.md", "(develop/performance.md#flips)", "(develop/performance.md)", "links", id="moved"
        ),
        pytest.param("draining.md", "listed --> held:", "listed --> draining:", "diagrams", id="diagram"),
    ],
)
def test_a_page_that_falls_behind_is_found(name: str, before: str, after: str, part: str) -> None:
    pages = written()
    english = "draining.md" if name == "dispatcher.md" else name
    assert before in pages[english]
    chinese, changed = both(name, pages | {english: pages[english].replace(before, after)})
    assert getattr(chinese, part) != getattr(changed, part)


def test_a_link_to_no_heading_is_found() -> None:
    pages = written()
    with pytest.raises(ValueError, match="there is no such heading"):
        both("install.md", pages | {"zh/install.md": pages["zh/install.md"] + "\n[a](draining.md#nothing)\n"})


@pytest.mark.parametrize("name", TRANSLATED)
def test_a_page_in_chinese_begins_with_the_page_in_english(name: str) -> None:
    english = "draining.md" if name == "dispatcher.md" else name
    assert f"](../{english}" in written()[f"zh/{name}"].split("\n\n")[1]


def test_every_page_in_chinese_is_compared() -> None:
    pages = {path.name for path in (DOCS / "zh").iterdir()}
    assert pages - {"getting-started.md"} == set(TRANSLATED), "tests/website/test_site.py has the other one"
