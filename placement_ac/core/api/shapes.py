"""
The bases of the shapes of API objects in JSON.

No I/O, no clock. `validate` returns the problem of a shape that does not fit; it never raises. Apart from
`schemas`, so that a command that reads none of those starts faster, and takes less memory.
"""

from typing import Annotated, ClassVar, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from placement_ac.core.api.fields import Obj

T = TypeVar("T")
W = TypeVar("W", bound="ApiModel")


def _none_is_empty(value: object) -> object:
    return () if value is None else value


ListOf = Annotated[tuple[T, ...], BeforeValidator(_none_is_empty)]
"""A list on the wire; `null` and absence mean empty, as Go writes them."""


_CONFIG: Final = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class ApiModel(BaseModel):
    """The base of all wire shapes: frozen, camelCase on the wire, unknown fields ignored."""

    model_config = _CONFIG


class SlottedModel:
    """The base of wire shapes that are kept as part of others: one takes 60 bytes, an ApiModel 490."""

    __slots__ = ()
    __pydantic_config__: ClassVar[ConfigDict] = _CONFIG


def validate(shape: type[W], raw: Obj, field: str) -> tuple[W | None, str]:
    """Return the shape of `raw[field]`, or None and the problem with it."""
    try:
        return shape.model_validate(raw.get(field) or {}), ""
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in (field, *first["loc"]))
        why = (
            first["msg"].removeprefix("Value error, ").replace("tuple", "list")
        )  # Kubernetes calls it a list
        return None, f"{where}: {why}"
