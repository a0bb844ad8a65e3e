"""
Write a report as the JSON of two ConfigMaps, and read it. Pure.

The first has the sums of clusters, the second also the details of their queues.
"""

from typing import Final

from pydantic import TypeAdapter, ValidationError

from placement_ac.core.capacity_report.model import CapacityReport

MAX_BYTES: Final = 900_000
"""Of a document (Kubernetes: 1 MiB for a ConfigMap)."""
TOO_LARGE: Final = f"left out: it is larger than {MAX_BYTES // 1000} KB, and a ConfigMap has at most 1 MiB"
_REPORT: Final = TypeAdapter(CapacityReport)
_QUEUES: Final = {"clusters": {"__all__": {"queues"}}}


class BadDocument(ValueError):
    """A document is not as `documents` writes it; the message names the field."""


def documents(report: CapacityReport) -> tuple[str, str]:
    """Return the document of the clusters, and that with their queues; one that is too large only says so."""
    return _text(report, _QUEUES), _text(report, None)


def read_report(text: str) -> CapacityReport:
    """Return the report of a document. Raises BadDocument."""
    try:
        return _REPORT.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise BadDocument(f"{where}: {first['msg']}") from None


def _text(report: CapacityReport, without: dict[str, dict[str, set[str]]] | None) -> str:
    text = _REPORT.dump_json(report, by_alias=True, exclude=without)
    if len(text) > MAX_BYTES:
        text = _REPORT.dump_json(CapacityReport(note=TOO_LARGE), by_alias=True)
    return text.decode()
