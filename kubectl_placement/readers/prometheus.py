"""Query Prometheus: how many GPUs clusters used."""

import json
import re
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import aiohttp

from kubectl_placement.timeline.model import Point
from placement_ac.core.api.errors import Refused, Unavailable
from placement_ac.core.api.fields import get_str
from placement_ac.observability.logs import redacted
from placement_ac.observability.metric_definitions import CLUSTER_QUOTA

POINTS: Final = 240
"""Values per series (Prometheus: at most 11,000)."""
TIMEOUT: Final = aiohttp.ClientTimeout(total=30)


async def used_gpus(
    url: str, gpus: Iterable[str], begin: datetime, end: datetime
) -> dict[str, tuple[Point, ...]]:
    """Return cluster → how many GPUs were used there over time. Raises ApiError."""
    names = json.dumps("|".join(map(re.escape, gpus)))
    series = f'{CLUSTER_QUOTA.name}{{kind="used",resource=~{names}}}'
    query = f"sum by (cluster) (max by (cluster, resource) ({series}))"
    return await _ranges(url, query, "cluster", begin, end)


async def _ranges(
    url: str, query: str, label: str, begin: datetime, end: datetime
) -> dict[str, tuple[Point, ...]]:
    """Return the value of a label → the points of its series."""
    step = max((end - begin).total_seconds() / POINTS, 1.0)
    asked = {
        "query": query,
        "start": f"{begin.timestamp():.3f}",
        "end": f"{end.timestamp():.3f}",
        "step": f"{step:.3f}",
    }
    answer = await _ask(f"{url.rstrip('/')}/api/v1/query_range", asked)
    try:
        rows = answer["data"]["result"]
        return {get_str(row, "metric", label): _points(row["values"], step) for row in rows}
    except (KeyError, TypeError, ValueError, OverflowError):
        raise Refused("set --prometheus to the URL of a Prometheus: the server at this URL is none") from None


async def _ask(url: str, query: dict[str, str]) -> Any:
    try:
        async with (
            aiohttp.ClientSession(timeout=TIMEOUT) as session,
            session.get(url, params=query, ssl=ssl.create_default_context()) as answer,
        ):
            if answer.status >= 400:
                raise Refused(f"Prometheus answers {answer.status}: {(await answer.text())[:200]}")
            return await answer.json(content_type=None)
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise Unavailable(f"Prometheus does not answer: {redacted(error)}") from None


def _points(values: Iterable[tuple[float, str]], step: float) -> tuple[Point, ...]:
    """Return the points at which the number changes; None where values are missing."""
    points: list[Point] = []
    last = None
    for at, number in values:
        if last is not None and at - last > 1.5 * step:
            points.append(Point(_time(last + step), None))
        value = int(float(number))
        if not points or points[-1].value != value:
            points.append(Point(_time(at), value))
        last = at
    return tuple(points)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
