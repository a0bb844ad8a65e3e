"""
Record how a real API server answers the requests of `object_exchanges` and `job_exchanges`.

The server is a fresh one, without CustomResourceDefinitions, and is not used for anything else afterwards:

    kubectl proxy --port 8001 &
    python -m tests.placement_lab.hub.record http://127.0.0.1:8001
"""

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import requests

from tests.placement_lab.hub import job_exchanges, object_exchanges
from tests.support.exchanges import exchanges
from tests.support.hub_client import Client
from tests.support.installed_crds import CRDS, InstalledCrds

TABLES: Final = (object_exchanges, job_exchanges)


def recording(table: ModuleType) -> Path:
    """Return the file with the answers to a table of requests."""
    return Path(str(table.__file__)).with_suffix(".jsonl")


class Server(Client):
    """A server behind `kubectl proxy`, which knows its credentials."""

    def __init__(self, url: str) -> None:
        self.url, self.session = url.rstrip("/"), requests.Session()
        self.session.trust_env = False
        self.hub: Any = self


def main(url: str) -> None:
    server = Server(url)
    if server.get(f"{CRDS}?limit=1")["items"]:
        sys.exit("use a fresh server: this one has CustomResourceDefinitions, whose webhooks would answer")
    InstalledCrds(server.session, server.url).restore(object_exchanges.crds())
    version = server.get("/version")["gitVersion"]
    for table in TABLES:
        lines = [json.dumps(entry) for entry in exchanges(server, table.STEPS)]
        recording(table).write_text("\n".join(lines) + "\n", encoding="utf-8")
        sys.stdout.write(f"{len(lines)} exchanges with {version}: {table.__name__}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
