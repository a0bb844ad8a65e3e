"""
Validate the `metadata` of an object from a file, which may contain anything.

Every object needs valid metadata. Other malformed fields are reported where they are read.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from placement_ac.core.api.schemas import ApiModel, Raw, validate


class _Strict(ApiModel):
    """A schema that converts neither text to numbers nor numbers to text."""

    model_config = ConfigDict(strict=True)


def _is_tree(value: object) -> object:
    """Validate `fieldsV1`: nested maps. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("it must be a map of maps")  # noqa: TRY004  # pydantic converts it to its error
    for one in value.values():
        _is_tree(one)
    return value


class _Owner(_Strict):
    kind: str
    name: str
    uid: str


class _Manager(_Strict):
    manager: str = ""
    operation: str = ""
    fields_v1: Annotated[Any, AfterValidator(_is_tree)] = Field(default_factory=dict)


class _Metadata(_Strict):
    name: str
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None
    managed_fields: list[_Manager] | None = None


def metadata_problem(obj: Raw) -> str:
    """Return the field of `metadata` that is invalid, and why; "" if all are valid."""
    return validate(_Metadata, obj, "metadata")[1]
