"""`graph -o html` and `timeline -o html`: the page of `ui` as a file, with the data inside."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubectl_placement.graph.model import build_graph
from kubectl_placement.status.model import CheckStatus
from kubectl_placement.timeline.model import Timeline
from kubectl_placement.ui.page import page_file
from kubectl_placement.ui.summary import slots, summarize
from placement_ac.cli.documents import plain


@dataclass(frozen=True, slots=True)
class PageSource:
    """Where the data come from."""

    server: str
    at: datetime
    """When they were read."""
    missing: str = ""
    """The missing rights, and their effect."""


def graph_file(branches: Sequence[CheckStatus], clusters_max: int, source: PageSource) -> str:
    """Return the page of these checks. `clusters_max`: how many clusters Kueue takes."""
    return _page(
        source,
        checks=[plain(summarize(one)) for one in branches],
        details=[plain({"status": one, "slots": slots(one, clusters_max)}) for one in branches],
        graph=plain(build_graph(branches)),
    )


def timeline_file(found: Timeline) -> str:
    """Return the page of this timeline, which names its source itself."""
    return _page(PageSource("", found.end), timeline=plain(found) | {"live": False})


def _page(source: PageSource, **data: Any) -> str:
    hub = {
        "server": source.server,
        "live": False,
        "controller": {"line": "", "running": None},
        "missing": source.missing,
        "problem": "",
    }
    return page_file({"at": plain(source.at), "hub": hub, "checks": [], "details": [], **data})
