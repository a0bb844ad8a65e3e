"""The hooks of MkDocs for the site: generated pages, documents of the repository, pictures, links."""

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from website import pictures
from website.generated import PAGES, ROOT
from website.markdown import for_mkdocs, relinked, without_contents

ELSEWHERE: Final = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "samples/README.md": "samples.md",
}
"""Documents outside of `docs/`, and their pages."""
HOME: Final = {"README.md": "index.md"}
"""The targets of links to documents without a page."""
CHINESE: Final = "zh/"
"""The folder of the pages in Chinese."""
FOREIGN: Final = re.compile(
    r"<(?:script|img|iframe|source|audio|video|embed)\b[^>]*\bsrc=[\"'](?:https?:)?//[^\"']*"
    r"|<link\b(?![^>]*\brel=[\"']?canonical)[^>]*\bhref=[\"']?(?:https?:)?//[^\"'>]*"
    r"|@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*"
)
"""HTML that makes a browser load from another host when it shows a page."""


def on_config(config: MkDocsConfig) -> None:
    fences = {"custom_fences": [{"name": "mermaid", "class": "mermaid", "format": pictures.fence}]}
    config.mdx_configs.setdefault("pymdownx.superfences", {}).update(fences)


def on_files(files: Files, config: MkDocsConfig) -> None:
    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    for source, path in ELSEWHERE.items():
        files.append(File.generated(config, path, content=(ROOT / source).read_text("utf-8")))


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Rewrite links to pages of the site, and lists for MkDocs; hide the home page's navigation."""
    path = page.file.src_uri
    if path == "index.md":
        page.meta["hide"] = ["navigation"]
    sources = {target: source for source, target in ELSEWHERE.items()}
    here = posixpath.dirname(sources.get(path, f"docs/{path}"))
    rename = {
        posixpath.relpath(source, here or "."): posixpath.relpath(to, posixpath.dirname(path) or ".")
        for source, to in pages_of_the_repository().items()
    }
    return for_mkdocs(relinked(without_contents(markdown), rename))


def on_page_context(_: object, page: Page, config: MkDocsConfig, **__: object) -> None:
    """Set the language of a page, for `<html lang>` and for the texts of the theme."""
    config.theme["language"] = "zh" if page.file.src_uri.startswith(CHINESE) else "en"


def pages_of_the_repository() -> dict[str, str]:
    """Return the page in the site of each document, by its path in the repository."""
    documents = (path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return {f"docs/{path}": path for path in documents} | ELSEWHERE | HOME


def on_post_build(config: MkDocsConfig) -> None:
    """Refuse a site that would load anything from another host."""
    asked = [
        f"{path.name}: {found[0]}"
        for path in Path(config.site_dir).rglob("*")
        if path.suffix in (".html", ".css")
        for found in FOREIGN.finditer(path.read_text("utf-8"))
    ]
    if asked:
        raise PluginError("The site would ask other hosts: " + "; ".join(asked))
