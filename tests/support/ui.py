"""Reads the server-sent events of `placement-ac ui`."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import requests


class EventStream:
    """The events of a page, one after the other."""

    def __init__(self, answer: requests.Response) -> None:
        self._lines = answer.iter_lines(chunk_size=1, decode_unicode=True)

    def next(self) -> tuple[str, Any]:
        """Return the name and the document of the next event."""
        name = ""
        for line in self._lines:
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                return name, json.loads(line.removeprefix("data: "))
        raise AssertionError("the stream has ended")

    def until(self, name: str, fits: Any = lambda _: True) -> Any:
        """Return the document of the next event of that name that fits."""
        while True:
            found, document = self.next()
            if found == name and fits(document):
                return document


@contextmanager
def events(url: str, check: str = "") -> Iterator[EventStream]:
    with requests.get(f"{url}events", params={"check": check}, stream=True, timeout=20) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        yield EventStream(answer)
