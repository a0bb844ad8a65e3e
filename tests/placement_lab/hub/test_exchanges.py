"""
The hub answers requests as a real kube-apiserver did, whose answers `record` has recorded.

With `--envtest` a real API server is asked.
"""

import json
from types import ModuleType
from typing import Any, Final

import pytest

from tests.placement_lab.hub import job_exchanges, object_exchanges
from tests.placement_lab.hub.record import recording
from tests.support.exchanges import exchanges, folded
from tests.support.hub_client import Client
from tests.support.real_hub import HubMaker, RealHub

Object = dict[str, Any]

DIFFERENT_OBJECTS: Final = {
    "int64-over": "a server names the type of its language, float64",
    "event-as-new": "Events are served by their first group alone, which we and all clients tried ask for",
    "new-event": "the same",
    "list-new-events": "the same",
    "isbn-not": "no kind has this format",
    "creditcard-not": "no kind has this format",
    "thing-finalizer": "a server also warns of a finalizer without a domain",
    "cluster-of-kueue-old-version": "Kueue's webhook converts versions; a bare server drops what one lacks",
}
DIFFERENT_JOBS: Final = {
    "container-twice": "our schema names the item, the server its name",
    "long-name": "the labels of the Job are reported, too, which are those of its template",
}


@pytest.mark.parametrize(
    ("table", "different"),
    [
        pytest.param(object_exchanges, DIFFERENT_OBJECTS, id="objects"),
        pytest.param(job_exchanges, DIFFERENT_JOBS, id="Jobs"),
    ],
)
def test_requests_are_answered_as_by_a_real_server(
    a_hub: HubMaker, table: ModuleType, different: dict[str, str]
) -> None:
    recorded = [json.loads(line) for line in recording(table).read_text(encoding="utf-8").splitlines()]
    with a_hub(crds=object_exchanges.crds()) as hub:
        answered = list(exchanges(Client(hub), table.STEPS))
    assert [entry["name"] for entry in answered] == [entry["name"] for entry in recorded]
    pairs = [(_compared(here), _compared(real)) for here, real in zip(answered, recorded, strict=True)]
    differ = [(here, real) for here, real in pairs if here != real]
    known = {} if isinstance(hub, RealHub) else different
    assert [pair for pair in differ if pair[0]["name"] not in known] == []
    assert {here["name"] for here, _ in differ} == set(known)


def _compared(exchange: Object) -> Object:
    return exchange | {"answer": folded(exchange["answer"])}
