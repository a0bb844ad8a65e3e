"""The built site in a browser: nothing is cut off, the search finds Chinese, pages say their language."""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.documents import ROOT

pytestmark = pytest.mark.long
WIDTHS = (1280, 390)

CUT = r"""
() => {
  const scrolls = (at) => ['auto', 'scroll'].includes(getComputedStyle(at).overflowX)
    && getComputedStyle(at).scrollbarWidth !== 'none';
  const page = document.documentElement;
  const edges = (element) => {
    for (let at = element; at !== page; at = at.parentElement) {
      if (scrolls(at)) return null;
      if (['hidden', 'clip'].includes(getComputedStyle(at).overflowX)) return at.getBoundingClientRect();
    }
    return {left: 0, right: page.clientWidth};
  };
  const found = [];
  const walker = document.createTreeWalker(document.querySelector('.md-content'), NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode());) {
    const box = text.textContent.trim() && text.parentElement.checkVisibility() && edges(text.parentElement);
    for (const word of box ? text.textContent.matchAll(/\S+/g) : []) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      for (const at of range.getClientRects())
        if (at.width && (at.right > box.right + 1 || at.left < box.left - 1)) found.push(word[0]);
    }
  }
  for (const code of document.querySelectorAll(':is(.language-bash, .language-yaml) pre > code'))
    if (code.scrollWidth > code.clientWidth) found.push(`not wrapped: ${code.textContent}`);
  for (const figure of document.querySelectorAll('.picture'))
    for (const label of figure.querySelectorAll('.nodeLabel, .edgeLabel'))
      if (label.getBoundingClientRect().left < figure.getBoundingClientRect().left - 1)
        found.push(`left of the picture: ${label.textContent}`);
  return found;
}
"""
"""Words that no scrollbar brings into view, commands that are not wrapped, labels left of a picture."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
    subprocess.run(command, check=True, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"})
    return folder


@pytest.fixture(scope="module")
def url(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_pages_in_chinese_say_so(site: Path) -> None:
    pages = {path.relative_to(site).as_posix(): path.read_text("utf-8") for path in site.rglob("*.html")}
    languages = {name: re.findall(r'<html lang="(\w+)"', text) for name, text in pages.items()}
    assert languages == {name: ["zh" if name.startswith("zh/") else "en"] for name in pages}


def test_the_search_index_has_the_pages_in_chinese(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    (removal,) = (doc for doc in index["docs"] if doc["location"] == "zh/install.html#卸载")
    words = re.split(index["config"]["separator"], removal["text"])
    assert {"控", "制", "placement", "Kueue"} < {word for word in words if word}


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("卸载", "/zh/install.html"),
        ("没有连接", "/zh/troubleshooting.html"),
        ("Kueue 的凭据", "/zh/"),
        ("mass loss", "/draining.html"),
        ("drain-deadline", "/reference/settings.html"),
    ],
)
def test_the_search_finds_it(browser: Any, url: str, query: str, wanted: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}/zh/install.html?q={query}")
    results = page.locator(".md-search-result__item > a")
    results.first.wait_for()
    paths = results.evaluate_all("all => all.map(one => one.pathname)")
    page.close()
    assert [path for path in paths[:3] if path.startswith(wanted)]


def test_all_characters_of_a_chinese_word_are_asked_for(browser: Any, url: str) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{url}/index.html?q=闸龘")
    page.wait_for_function("!/Type|Init/.test(document.querySelector('.md-search-result__meta').textContent)")
    assert page.locator(".md-search-result__meta").inner_text() == "No matching documents"
    page.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_off(browser: Any, site: Path, url: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    cut = {}
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        page.goto(f"{url}/{name}")
        cut[name] = page.evaluate(CUT)
    page.close()
    assert {name: words for name, words in cut.items() if words} == {}
