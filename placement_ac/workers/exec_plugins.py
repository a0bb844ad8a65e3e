"""The credential plugins that an admin allows for ClusterProfiles: their file, and running them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from placement_ac.core.api.errors import BadSettings
from placement_ac.core.api.shapes import ApiModel, ListOf
from placement_ac.core.kubeconfig.servers import AllowedServers, is_suffix
from placement_ac.core.kubeconfig.source import Unusable
from placement_ac.core.safe_yaml import NotYaml, load_yaml
from placement_ac.kube.exec_plugin import ExecCredentials, ExecPlugin, PluginFailed, cluster_info, run_plugin


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
        """Read JSON or YAML. Raises BadSettings, which names the setting, the file and the field."""
        try:
            content = load_yaml(path.read_bytes())
        except OSError as error:
            raise BadSettings(f"access-providers: {path} cannot be read: {error.strerror}") from None
        except NotYaml as error:
            raise BadSettings(f"access-providers: {path}: {error}") from None
        try:
            return cls.model_validate(content)
        except ValidationError as error:
            details = error.errors(include_url=False, include_input=False, include_context=False)
            problems = "; ".join(f"{'.'.join(map(str, d['loc'])) or 'the file'}: {d['msg']}" for d in details)
            raise BadSettings(f"access-providers: {path}: {problems}") from None

    @property
    def allowed_servers(self) -> AllowedServers:
        """The names of the providers in their order, with their suffixes; the first of a name counts."""
        suffixes: dict[str, tuple[str, ...]] = {}
        for provider in self.providers:
            suffixes.setdefault(provider.name, provider.allowed_server_suffixes)
        return suffixes

    def choose(self, offers: OfferedProviders) -> tuple[ExecProvider, OfferedProvider] | None:
        """Return the first provider of the file that the profile offers, as Kueue does."""
        offered = {offer.name: offer for offer in (*offers.credential_providers, *offers.access_providers)}
        return next(((p, offered[p.name]) for p in self.providers if p.name in offered), None)


async def run(command: ExecConfig, cluster: Mapping[str, Any]) -> ExecCredentials | Unusable:
    """Run a plugin for the `cluster` of an offer; if cancelled, end the plugin and its children.

    Its stderr is dropped: the result is in conditions, and stderr may contain secrets.
    """
    plugin = ExecPlugin(
        command.command,
        command.api_version,
        tuple(command.args),
        {variable.name: variable.value for variable in command.env},
    )
    try:
        return await run_plugin(plugin, cluster_info(cluster) if command.provide_cluster_info else None)
    except PluginFailed as failed:
        return Unusable(str(failed))
