"""
The GPUs that clusters used in the last day, from Prometheus, asked seldom.
"""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from kubectl_placement.readers.prometheus import used_gpus
from kubectl_placement.timeline.model import Point
from placement_ac.core.api.errors import ApiError

DAY: Final = timedelta(days=1)
AGAIN_SECONDS: Final = 300.0
"""How often Prometheus is asked: a point of the picture is six minutes."""


class LastDay:
    """`url` "": there is no Prometheus, and no last day."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._asked_at = float("-inf")
        self._points: Mapping[str, Sequence[Point]] = {}
        self.span: tuple[datetime, datetime] | None = None
        """From when to when."""
        self.problem = ""
        """Why it is not known."""

    async def used(self, gpus: Sequence[str]) -> Mapping[str, Sequence[Point]]:
        """Return cluster → how many GPUs were used over time; of an earlier call if that was lately."""
        now = asyncio.get_running_loop().time()
        if self._url and now - self._asked_at >= AGAIN_SECONDS:
            self._asked_at, end = now, datetime.now(UTC)
            try:
                self._points = await used_gpus(self._url, gpus, end - DAY, end)
                self.span, self.problem = (end - DAY, end), ""
            except ApiError as error:
                self.problem = str(error)
        return self._points
