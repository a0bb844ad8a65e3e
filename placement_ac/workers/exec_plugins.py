"""
The credential plugins that an admin allows for ClusterProfiles: their file, and running them.

A plugin gets the cluster and prints an ExecCredential (client.authentication.k8s.io), as kubectl's plugins.
The `kubernetes` package's ExecProvider is not used: it cannot be stopped, and its errors quote the output.
The output of a plugin is used for the credentials only, and never logged.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, Self

import orjson
from pydantic import (
    AliasChoices,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from placement_ac.config.settings import BadSettings
from placement_ac.core.api.schemas import ApiModel, ListOf
from placement_ac.core.kubeconfig.servers import AllowedServers, is_suffix
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.core.safe_yaml import NotYaml, load_yaml

_CONFIG_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Kubernetes: the name of the cluster's extension that a plugin gets as its `config`."""
_CLUSTER_FIELDS: Final = ("server", "tls-server-name", "certificate-authority-data", "proxy-url")
"""The fields of the cluster that a plugin gets."""
_KILL_SECONDS: Final = 1.0
MAX_OUTPUT_BYTES: Final = 1_000_000
"""A plugin that prints more is stopped: an ExecCredential has some KB."""


class _FileModel(BaseModel):
    """A part of the admin's file: an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class EnvVar(_FileModel):
    """An environment variable of a plugin."""

    name: str = Field(min_length=1)
    value: str = Field(default="", repr=False)


class ExecConfig(_FileModel):
    """`execConfig`: how a plugin is run."""

    api_version: Literal["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]
    command: str = Field(min_length=1)
    args: ListOf[str] = Field(default=(), repr=False)
    env: ListOf[EnvVar] = ()
    provide_cluster_info: bool = False
    interactive_mode: Literal["", "Never", "IfAvailable"] = ""
    install_hint: str = ""


class ExecProvider(_FileModel):
    """A kind of access that ClusterProfiles may offer, and the plugin for it."""

    name: str = Field(min_length=1)
    exec_config: ExecConfig
    profile_sourced_cli_args_policy: Literal["", "Ignore"] = Field(
        default="", alias="profileSourcedCLIArgsPolicy"
    )
    profile_sourced_env_vars_policy: Literal["", "Ignore"] = ""
    allowed_server_suffixes: tuple[str, ...] = Field(default=(), min_length=1)
    """Ours, not Kueue's: the servers for which the plugin is run. Absent: any; empty or null: an error."""

    @field_validator("allowed_server_suffixes")
    @classmethod
    def _are_suffixes(cls, entries: tuple[str, ...], file: ValidationInfo) -> tuple[str, ...]:
        for number, entry in enumerate(entries, 1):
            if not is_suffix(entry):
                raise PydanticCustomError(
                    "server_suffix",
                    "write a host name, a domain such as .example.com or an IP address: "
                    "entry {number} of provider {name} is none of them",
                    {"number": number, "name": file.data.get("name", "")},
                )
        return entries


class OfferedProvider(ApiModel):
    """An entry of a ClusterProfile's `status.accessProviders`."""

    name: str = ""
    cluster: dict[str, Any] = Field(default_factory=dict)


class OfferedProviders(ApiModel):
    """A ClusterProfile's `status`: accessProviders, and credentialProviders, their former name."""

    access_providers: ListOf[OfferedProvider] = ()
    credential_providers: ListOf[OfferedProvider] = ()


class AccessProviders(_FileModel):
    """The file: `providers`, as cluster-inventory-api has it, or `accessProviders`, as Kueue has it."""

    providers: tuple[ExecProvider, ...] = Field(validation_alias=AliasChoices("providers", "accessProviders"))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read JSON or YAML. Raises BadSettings, which names the file and the field."""
        try:
            content = load_yaml(path.read_bytes())
        except OSError as error:
            raise BadSettings(f"{path} cannot be read: {error.strerror}") from None
        except NotYaml as error:
            raise BadSettings(f"{path}: {error}") from None
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False, include_context=False)
            problems = "; ".join(f"{'.'.join(map(str, d['loc'])) or 'the file'}: {d['msg']}" for d in details)
            raise BadSettings(f"{path}: {problems}") from None

    @property
    def allowed_servers(self) -> AllowedServers:
        """The names of the providers in their order, with their suffixes; the first of a name counts."""
        found: dict[str, tuple[str, ...]] = {}
        for provider in self.providers:
            found.setdefault(provider.name, provider.allowed_server_suffixes)
        return found

    def choose(self, offers: OfferedProviders) -> tuple[ExecProvider, OfferedProvider] | None:
        """Return the first provider of the file that the profile offers, as Kueue does."""
        offered = {offer.name: offer for offer in (*offers.credential_providers, *offers.access_providers)}
        return next(((p, offered[p.name]) for p in self.providers if p.name in offered), None)


class ExecCredentials(ApiModel):
    """The `status` of a plugin's ExecCredential. Its repr contains no secret."""

    token: str = Field(default="", repr=False)
    client_certificate_data: str = Field(default="", repr=False)
    client_key_data: str = Field(default="", repr=False)
    expiration_timestamp: AwareDatetime | None = None


class _ExecCredential(ApiModel):
    api_version: str
    kind: Literal["ExecCredential"]
    status: ExecCredentials


async def run(command: ExecConfig, cluster: Mapping[str, Any]) -> ExecCredentials | Unusable:
    """Run a plugin for the `cluster` of an offer; if cancelled, kill the plugin and its children."""
    try:
        process = await asyncio.create_subprocess_exec(
            command.command,
            *command.args,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,  # it may contain secrets
            env=_environment(command, cluster),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its arguments are impossible"
        return Unusable(f"plugin {command.command} cannot be started: {why}")
    try:
        output = await _read_output(process)
    finally:
        await _kill(process)
    if output is None:
        return Unusable(
            f"plugin {command.command} was stopped: it printed more than 1 MB; run it by hand to see why"
        )
    if process.returncode:
        return Unusable(
            f"plugin {command.command} ended with code {process.returncode}: run it by hand to see why"
        )
    return _parse_credential(output, command)


async def _read_output(process: asyncio.subprocess.Process) -> bytes | None:
    """Return the output of a process when it has ended; None if it is longer than MAX_OUTPUT_BYTES."""
    assert process.stdout  # noqa: S101  # it is a pipe
    output = bytearray()
    while part := await process.stdout.read(MAX_OUTPUT_BYTES):
        output += part
        if len(output) > MAX_OUTPUT_BYTES:
            return None
    await process.wait()
    return bytes(output)


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _KILL_SECONDS)


def _environment(command: ExecConfig, cluster: Mapping[str, Any]) -> dict[str, str]:
    """Return, as kubectl does, our environment, the variables that the admin adds, and the request."""
    spec: dict[str, Any] = {"interactive": False}
    if command.provide_cluster_info:
        spec["cluster"] = {key: cluster[key] for key in _CLUSTER_FIELDS if cluster.get(key)} | _config(
            cluster
        )
    request = {"apiVersion": command.api_version, "kind": "ExecCredential", "spec": spec}
    added = {variable.name: variable.value for variable in command.env}
    return {**os.environ, **added, "KUBERNETES_EXEC_INFO": orjson.dumps(request).decode()}


def _config(cluster: Mapping[str, Any]) -> dict[str, Any]:
    extensions = cluster.get("extensions")
    for entry in extensions if isinstance(extensions, list) else ():
        if isinstance(entry, dict) and entry.get("name") == _CONFIG_EXTENSION:
            return {"config": entry.get("extension")}
    return {}


def _parse_credential(output: bytes, command: ExecConfig) -> ExecCredentials | Unusable:
    try:
        credential = _ExecCredential.model_validate(orjson.loads(output))
    except orjson.JSONDecodeError:
        return Unusable(f"plugin {command.command} gave no JSON")
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "the whole"
        return Unusable(f"plugin {command.command} gave no ExecCredential that can be read: {where}")
    if credential.api_version != command.api_version:
        return Unusable(f"plugin {command.command} does not speak {command.api_version}")
    return credential.status
