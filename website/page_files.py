"""The page of `ui` as a file, with the data of checks or of a timeline inside: for pictures and tests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kubectl_placement.graph.model import build_graph
from kubectl_placement.status.model import CheckStatus
from kubectl_placement.timeline.model import Timeline
from kubectl_placement.ui.page import DATA, POLICY, template, to_json
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


def graph_file(statuses: Sequence[CheckStatus], clusters_max: int, source: PageSource) -> str:
    """Return the page of these checks. `clusters_max`: how many clusters Kueue takes."""
    return _page(
        source,
        checks=[plain(summarize(check_status)) for check_status in statuses],
        details=[
            plain({"status": check_status, "slots": slots(check_status, clusters_max)})
            for check_status in statuses
        ],
        graph=plain(build_graph(statuses)),
    )


def timeline_file(timeline: Timeline) -> str:
    """Return the page of this timeline, which names its source itself."""
    return _page(PageSource("", timeline.end), timeline=plain(timeline) | {"live": False})


def _page(source: PageSource, **data: Any) -> str:
    hub = {
        "server": source.server,
        "live": False,
        "controller": {"line": "", "running": None},
        "missing": source.missing,
        "problem": "",
    }
    return page_file({"at": plain(source.at), "hub": hub, "checks": [], "details": [], **data})


def page_file(data: object) -> str:
    """Return the page with its data inside, JSON types alone: it needs no server, and makes no request."""
    page = template()
    policy = f'<meta http-equiv="Content-Security-Policy" content="{page.policy}">\n'
    inside = to_json(data).decode().replace("<", "\\u003c")  # HTML ends a script, or begins a comment, with <
    data_element = f'<script id="data" type="application/json">{inside}</script>\n'
    return page.text.replace(POLICY, policy).replace(DATA, data_element)
