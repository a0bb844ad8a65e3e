"""
The hub answers requests about Jobs as a kube-apiserver 1.36.2 did, whose answers are recorded.

With `--envtest` a real API server is asked. A new recording is what `exchanges` yields there.
"""

import json
from collections.abc import Iterator
from typing import Final

from tests.placement_lab.hub.job_exchanges import JOBS, RECORDED, STEPS, Object, meaning
from tests.support.hub_client import Client
from tests.support.real_hub import RealHub

DIFFERENT: Final = {
    "container-twice": "our schema names the item, the server its name",
    "long-name": "the labels of the Job are reported, too, which are those of its template",
}


def exchanges(client: Client) -> Iterator[Object]:
    for name, method, path, body, content_type in STEPS:
        answer = client.ask(method, JOBS + path, body, Content_Type=content_type)
        warnings = [answer.headers["Warning"]] if "Warning" in answer.headers else []
        said = meaning(answer.json(), warnings)
        yield {
            "name": name,
            "request": f"{method} {path}".strip(),
            "status": answer.status_code,
            "answer": said,
        }


def test_requests_about_jobs_are_answered_as_by_a_real_server(client: Client) -> None:
    recorded = [json.loads(line) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    answered = list(exchanges(client))
    assert [entry["name"] for entry in answered] == [entry["name"] for entry in recorded]
    different = [(here, real) for here, real in zip(answered, recorded, strict=True) if here != real]
    known = {} if isinstance(client.hub, RealHub) else DIFFERENT
    assert [pair for pair in different if pair[0]["name"] not in known] == []
    assert {here["name"] for here, _ in different} == set(known)
