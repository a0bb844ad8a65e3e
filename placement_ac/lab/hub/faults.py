"""
Faults to order: answers that fail, come late, or never come. And the journal of what was asked.

Both are used from any thread.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
import yaml

WRITES: Final = ("POST", "PUT", "PATCH", "DELETE")


@dataclass(slots=True)
class Fault:
    """One ordered fault; see `Faults.add`."""

    methods: tuple[str, ...]
    path: re.Pattern[str] | None
    agents: tuple[str, ...]
    status: int | None
    body: Any
    headers: dict[str, str]
    delay: float
    hang_up: bool
    after: bool
    left: int
    skip: int

    def matches(self, method: str, path: str, agent: str) -> bool:
        return (
            (not self.methods or method in self.methods)
            and (self.path is None or bool(self.path.search(path)))
            and agent.startswith(self.agents)
        )


class Faults:
    """What goes wrong with the next requests. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[Fault] = []

    def add(
        self,
        method: str | tuple[str, ...] = (),
        path: str | None = None,
        *,
        agent: str | tuple[str, ...] = "",
        status: int | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
        delay: float = 0.0,
        times: int = 1,
        skip: int = 0,
        hang_up: bool = False,
        after: bool = False,
    ) -> None:
        """
        Let the next `times` requests go wrong, after `skip` that go well, which have this method
        (or one of them), a path that `path`, a regular expression, finds, and a User-Agent that
        begins with `agent` (or one of them).

        They wait `delay` seconds; then, with `status`, they get that answer (`body`: a Status
        by default), with `hang_up` their connection is cut, with neither they are served.
        With `after` this happens when the request was carried out: only its answer is lost.
        """
        pattern = re.compile(path) if path is not None else None
        methods = (method,) if isinstance(method, str) else method
        agents = (agent,) if isinstance(agent, str) else agent
        fault = Fault(
            methods, pattern, agents, status, body, headers or {}, delay, hang_up, after, times, skip
        )
        with self._lock:
            self._faults.append(fault)

    @property
    def all_met(self) -> bool:
        """Whether every fault has been met as often as it was ordered."""
        return not self._faults

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, method: str, path: str, agent: str) -> Fault | None:
        """The fault this request meets, if any; the first that was added counts."""
        if not self._faults:
            return None
        with self._lock:
            for fault in self._faults:
                if fault.matches(method, path, agent):
                    if fault.skip:
                        fault.skip -= 1
                        continue
                    fault.left -= 1
                    if fault.left <= 0:
                        self._faults.remove(fault)
                    return fault
        return None


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came and the status it was answered with (0: the connection was cut)."""

    at: float  # time.time()
    method: str
    path: str
    query: dict[str, str]
    user: str
    user_agent: str
    status: int
    raw: bytes = field(repr=False, default=b"")

    @property
    def body(self) -> Any:
        """The parsed body, new each time; None when there was none, text when it could not be parsed."""
        if not self.raw:
            return None
        try:
            return orjson.loads(self.raw)
        except ValueError:
            pass  # an apply may come as YAML
        try:
            return yaml.safe_load(self.raw)
        except yaml.YAMLError:
            return self.raw.decode(errors="replace")
