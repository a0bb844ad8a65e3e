"""
A change of Kueue's list, as the controller's events carry it: JSON in an annotation, instead of the message.

Pure. Who may write events may write anything into them: an annotation of another shape counts as none.
"""

import json
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from placement_ac.core.api.fields import Obj, get_str
from placement_ac.core.api.shapes import SlottedModel

ANNOTATION: Final = "placement-ac.open-cluster-management.io/event"
SIZE_MAX: Final = 32_768
"""Characters of the annotation; twenty clusters, the most that Kueue lists, take about two thousand."""
Change = Literal["added", "draining", "drained", "removed"]


@dataclass(frozen=True, slots=True)
class ClusterChange(SlottedModel):
    """A managed cluster in a change of the list."""

    name: Annotated[str, Field(min_length=1, max_length=256)]
    score: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None
    """Of one that is added; None: nothing scores it."""
    cause: str = ""
    """Why it is added, drains or was removed, as text."""
    state: str = ""
    """Why it is still listed, or whether it has drained, as text."""
    again: bool = False
    """Of one that is added: it was on the list already, and drained."""

    def said(self) -> dict[str, object]:
        """Return the fields that say something."""
        fields = ((name, getattr(self, name)) for name in self.__dataclass_fields__)
        return {name: value for name, value in fields if _says(value)}


@dataclass(frozen=True, slots=True)
class ListChange(SlottedModel):
    """A change of some clusters of the list. Only reading validates: a plan never fails for its event."""

    change: Change
    clusters: tuple[ClusterChange, ...] = ()
    more: Annotated[int, Field(ge=0, lt=2**31)] = 0
    """The number of clusters that are left out, because the annotation would be too long."""

    def to_json(self) -> str:
        """Return the annotation: at most SIZE_MAX characters."""
        shown = self.clusters
        while len(annotation := self._annotation(shown)) > SIZE_MAX:
            shown = shown[: len(shown) // 2]
        return annotation

    def _annotation(self, shown: tuple[ClusterChange, ...]) -> str:
        clusters = [cluster.said() for cluster in shown]
        left_out = self.more + len(self.clusters) - len(shown)
        more = {"more": left_out} if left_out else {}
        return json.dumps({"change": self.change, "clusters": clusters, **more}, separators=(",", ":"))


def _says(value: object) -> bool:
    return bool(value) or (value == 0 and value is not False)  # a score of 0 is one


_SCHEMA: Final = TypeAdapter(ListChange)


def list_change_of(event: Obj) -> ListChange | None:
    """Return the change that an Event carries; None: it carries none that can be read."""
    annotation = get_str(event, "metadata", "annotations", ANNOTATION)
    try:
        return _SCHEMA.validate_json(annotation) if len(annotation) <= SIZE_MAX else None
    except ValidationError:
        return None
