"""
Write a report as two JSON documents, the sums of clusters and the details of their queues, and read them.

Pure. Each fits into a ConfigMap: of one that does not, details are left out before totals, and its note says
so.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Final, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from placement_ac.core.api.fields import format_time, parse_time
from placement_ac.core.capacity_report.model import (
    Amounts,
    CapacityReport,
    ClusterCapacity,
    QueueCapacity,
    Quota,
    Supply,
    added,
)

VERSION: Final = 1
MAX_BYTES: Final = 900_000
"""Of a document (Kubernetes: 1 MiB for a ConfigMap)."""
ONLY_SUMS: Final = "all flavors of a resource are one row"
ONLY_GPUS: Final = "only GPUs are here"
FEWER: Final = "only the first {} of {} clusters are here"
TOO_LARGE: Final = "left out of the ConfigMap, which has at most 1 MiB: {}"


class BadDocument(ValueError):
    """A document is not as `documents` writes it; the message names the field."""


def documents(report: CapacityReport, max_bytes: int = MAX_BYTES) -> tuple[str, str]:
    """Return the document of the clusters, and that of their queues."""
    return _fitting(report, max_bytes, _clusters), _fitting(report, max_bytes, _queues)


def read_report(clusters: str, queues: str | None = None) -> CapacityReport:
    """Return the report of both documents; `queues` None: without its queues. Raises BadDocument."""
    found = _parsed(_ClustersDocument, clusters)
    details = _parsed(_QueuesDocument, queues) if queues is not None else _QueuesDocument(version=VERSION)
    by_name = {one.name: tuple(queue.as_queue() for queue in one.queues) for one in details.clusters}
    return CapacityReport(
        tuple(one.as_cluster(by_name.get(one.name, ())) for one in found.clusters),
        tuple(found.gpus),
        found.waiting,
        "; ".join(filter(None, (found.note, details.note and f"queues: {details.note}"))),
        None if found.whole is None else {name: Amounts(*row) for name, row in found.whole.items()},
    )


# -- writing

Body = dict[str, object]
MakeBody = Callable[[CapacityReport], Body]
Change = Callable[[Quota], Quota]


def _clusters(report: CapacityReport) -> Body:
    clusters = [
        {
            "name": cluster.name,
            "placements": cluster.placements,
            "readAt": format_time(cluster.read_at) if cluster.read_at else None,
            "problem": cluster.problem,
            "quota": _rows(cluster.quota),
        }
        for cluster in report.clusters
    ]
    whole = {"whole": report.whole} if report.whole is not None else {}
    return {
        "gpus": report.gpus,
        "waiting": report.waiting,
        "note": report.note,
        **whole,
        "clusters": clusters,
    }


def _queues(report: CapacityReport) -> Body:
    clusters = [
        {
            "name": cluster.name,
            "queues": [
                {
                    "name": queue.name,
                    "active": queue.active,
                    "pending": queue.pending,
                    "quota": _rows(queue.quota),
                }
                for queue in cluster.queues
            ],
        }
        for cluster in report.clusters
        if cluster.queues
    ]
    return {"note": report.note, "clusters": clusters}


def _rows(quota: Quota) -> list[tuple[object, ...]]:
    return [(*supply, *amounts) for supply, amounts in quota.items()]


def _fitting(report: CapacityReport, max_bytes: int, body: MakeBody) -> str:
    """Return the first text, of those with less and less in them, that is small enough."""
    text = ""
    for smaller in _smaller(report):
        text = json.dumps({"version": VERSION, "unit": "thousandths", **body(smaller)}, separators=(",", ":"))
        if len(text) <= max_bytes:
            break
    return text


def _smaller(report: CapacityReport) -> Iterator[CapacityReport]:
    yield report
    merged = _mapped(report, _without_flavors)
    yield replace(merged, note=TOO_LARGE.format(ONLY_SUMS))
    gpus = _mapped(merged, lambda quota: {s: a for s, a in quota.items() if s.resource in report.gpus})
    yield replace(gpus, note=TOO_LARGE.format(f"{ONLY_SUMS}, and {ONLY_GPUS}"))
    count = len(gpus.clusters)
    while count:
        count //= 2
        fewer = FEWER.format(count, len(gpus.clusters))
        note = TOO_LARGE.format(f"{ONLY_SUMS}, {ONLY_GPUS}, and {fewer}")
        yield replace(gpus, clusters=gpus.clusters[:count], note=note, whole=gpus.totals())


def _mapped(report: CapacityReport, change: Change) -> CapacityReport:
    """Return the report with another quota in each cluster and queue."""
    return replace(
        report,
        clusters=tuple(
            replace(
                cluster,
                quota=change(cluster.quota),
                queues=tuple(replace(queue, quota=change(queue.quota)) for queue in cluster.queues),
            )
            for cluster in report.clusters
        ),
    )


def _without_flavors(quota: Quota) -> Quota:
    return added((Supply("", supply.resource), amounts) for supply, amounts in quota.items())


# -- reading

Row = tuple[str, str, int, int, int | None, int | None, int, int]
Sums = tuple[int, int, int | None, int | None, int, int]


def _time(value: object) -> datetime | None:
    return parse_time(value) if isinstance(value, str) else None


class _Part(BaseModel):
    """A part of a document; a later version may have more fields."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class _QueueDocument(_Part):
    name: str
    active: bool = True
    pending: int = 0
    quota: list[Annotated[Row, Field(strict=False)]] = []

    def as_queue(self) -> QueueCapacity:
        return QueueCapacity(self.name, _quota(self.quota), self.active, self.pending)


class _ClusterQueues(_Part):
    name: str
    queues: list[_QueueDocument] = []


class _QueuesDocument(_Part):
    version: Literal[1]
    note: str = ""
    clusters: list[_ClusterQueues] = []


class _Cluster(_Part):
    name: str
    placements: list[str] = []
    read_at: Annotated[datetime | None, BeforeValidator(_time), Field(alias="readAt")] = None
    problem: str = ""
    quota: list[Annotated[Row, Field(strict=False)]] = []

    def as_cluster(self, queues: tuple[QueueCapacity, ...]) -> ClusterCapacity:
        placements = tuple(self.placements)
        return ClusterCapacity(self.name, placements, self.read_at, self.problem, queues, _quota(self.quota))


class _ClustersDocument(_Part):
    version: Literal[1]
    gpus: list[str] = []
    waiting: dict[str, int] | None = None
    note: str = ""
    whole: dict[str, Annotated[Sums, Field(strict=False)]] | None = None
    clusters: list[_Cluster] = []


D = TypeVar("D", bound=_Part)


def _quota(rows: Iterable[Row]) -> Quota:
    return {Supply(row[0], row[1]): Amounts(*row[2:]) for row in rows}


def _parsed(shape: type[D], text: str) -> D:
    try:
        return shape.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadDocument(f"{where}: {first['msg']}") from None
