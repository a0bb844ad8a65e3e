"""
Every setting: validated, frozen, with its default. The only reader of the environment.

A setting comes from the command line, else from `PLACEMENT_AC_<NAME>`, else from its default.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from placement_ac.errors import PlacementAcError
from placement_ac.names import PER_PLACEMENT, SHARED, WAYS, Way

PREFIX: Final = "PLACEMENT_AC_"
_OF_A_SERVICE: Final = re.compile(r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_.*)?|PORT|PORT_\d+_.*)")
"""Kubernetes: the variables that it puts into every Pod for a Service that is called placement-ac…"""
_NAMESPACE: Final = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"


_WORDS: Final = {
    "string_pattern_mismatch": "a namespace has lower-case letters, digits and '-', at most 63",
}


class BadSettings(PlacementAcError):
    """A setting is unknown or has an impossible value; the message names it and says what is possible."""


def _split(value: object) -> object:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


class Settings(BaseModel):
    """What an admin may choose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kubeconfig: Path | None = Field(
        None, description="The kubeconfig; without it $KUBECONFIG, ~/.kube/config or the Pod's account."
    )
    context: str | None = Field(None, description="The context in the kubeconfig.")
    placement_namespace: str = Field(
        "kueue-system", pattern=_NAMESPACE, description="Where the Placements are that checks name."
    )
    kueue_namespace: str = Field(
        "kueue-system",
        pattern=_NAMESPACE,
        description="Where Kueue runs and reads Secrets and ClusterProfiles.",
    )
    cluster_names: Literal["{placement}-{cluster}", "{cluster}"] = Field(
        PER_PLACEMENT,
        description=f"Names of MultiKueueClusters; {SHARED} lets one serve all Placements.",
    )
    credentials: Annotated[tuple[Way, ...], BeforeValidator(_split)] = Field(
        WAYS, min_length=1, description="Where credentials are looked for, in this order, comma-separated."
    )
    log_format: Literal["text", "json"] = Field("text", description="Log lines for people or programs.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least that is told."
    )

    @field_validator("credentials")
    @classmethod
    def _each_once(cls, ways: tuple[Way, ...]) -> tuple[Way, ...]:
        if len(set(ways)) != len(ways):
            raise ValueError("each way may stand there once")
        return ways


def load(flags: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> Settings:
    """Return the settings; `flags` that are None were not given. Raises BadSettings."""
    given = _from_environment(os.environ if environment is None else environment)
    given |= {name: value for name, value in flags.items() if value is not None}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        first_of_each = {details["loc"][:1]: details for details in reversed(error.errors(include_url=False))}
        raise BadSettings("; ".join(map(_explain, reversed(first_of_each.values())))) from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    given = {}
    for variable, value in environment.items():
        if variable.startswith(PREFIX):
            name = variable.removeprefix(PREFIX).lower()
            if name not in Settings.model_fields:
                if _OF_A_SERVICE.fullmatch(name.upper()):
                    continue
                known = ", ".join(PREFIX + field.upper() for field in Settings.model_fields)
                raise BadSettings(f"{variable}: there is no such setting; known are {known}")
            given[name] = value
    return given


def _explain(error: Any) -> str:
    name = str(error["loc"][0]).replace("_", "-") if error["loc"] else "settings"
    told = _WORDS.get(error["type"], error["msg"].removeprefix("Value error, "))
    return f"{name}: {error['input']!r} is not possible: {told}"
