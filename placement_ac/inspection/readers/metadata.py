"""
Whether an object's `metadata` is what an API server would give: a file may hold anything.

Pure. All else that is malformed is told where it is read; on metadata everything stands.
"""

from typing import Annotated, Any

from pydantic import AfterValidator, ConfigDict, Field

from placement_ac.core.api.schemas import ApiModel, Raw, validate


class _Strict(ApiModel):
    """A shape that takes no text for a number, nor a number for text."""

    model_config = ConfigDict(strict=True)


def _is_tree(value: object) -> object:
    """Take `fieldsV1`: maps within maps. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError("it is to be a map of maps")  # noqa: TRY004  # what pydantic turns into its error
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
    """Return the field of `metadata` that is not right, and why; "" when all are."""
    return validate(_Metadata, obj, "metadata")[1]
