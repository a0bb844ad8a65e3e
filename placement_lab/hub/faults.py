"""
Fault injection: responses that fail, are delayed, or are lost. And the record of a request.

Safe to use from any thread.
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
    """One injected fault; see `Faults.add`."""

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
    slow_body: float

    def matches(self, method: str, path: str, agent: str) -> bool:
        return (
            (not self.methods or method in self.methods)
            and (self.path is None or bool(self.path.search(path)))
            and agent.startswith(self.agents)
        )


class Faults:
    """The faults to inject into the next requests. Thread-safe."""

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
        slow_body: float = 0.0,
    ) -> None:
        """
        Inject a fault into the next `times` matching requests, after `skip` matching ones.

        A request matches if it has this method (or one of them), the regular expression `path` finds its
        path, and its User-Agent begins with `agent` (or one of them). The response is delayed by `delay`
        seconds. With `status`, the response has that status (`body`: a Status by default); with `hang_up`,
        the connection is closed; with neither, the request is served. With `after`, the request is
        processed first, and only its response is lost. With `slow_body`, the body takes that many seconds.
        """
        pattern = re.compile(path) if path is not None else None
        methods = (method,) if isinstance(method, str) else method
        agents = (agent,) if isinstance(agent, str) else agent
        fault = Fault(
            methods,
            pattern,
            agents,
            status,
            body,
            headers or {},
            delay,
            hang_up,
            after,
            times,
            skip,
            slow_body,
        )
        with self._lock:
            self._faults.append(fault)

    @property
    def all_met(self) -> bool:
        """Whether every fault has been injected as often as requested."""
        return not self._faults

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()

    def take(self, method: str, path: str, agent: str) -> Fault | None:
        """Return the first matching fault and count it, or None."""
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
    """One request and the status of its response (0: the connection was closed)."""

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
        """The body, parsed anew on each access; None if there is none, text if it cannot be parsed."""
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
