"""
The caller's own access file: `--access-config`, $PLACEMENT_AC_ACCESS_CONFIG, or the usual place.

An unknown field is an error, because a misspelt one would be ignored otherwise.
"""

import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from placement_ac.core.api.errors import BadSettings
from placement_ac.core.safe_yaml import NotYaml, load_yaml
from placement_ac.kube.clientcmd import expanded

VARIABLE: Final = "PLACEMENT_AC_ACCESS_CONFIG"
USUAL: Final = "placement-ac/access.yaml"
"""Below $XDG_CONFIG_HOME, or ~/.config."""
CLUSTER: Final = "{cluster}"
"""In the values of an entry: the name of the managed cluster."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)


class AccessEntry(_Part):
    """An entry: how the caller gets to the clusters whose names match a pattern such as `eu-*`."""

    cluster: str = Field(min_length=1)
    """Of the managed cluster, or of the MultiKueueCluster."""
    context: str = ""
    kubeconfig: str = ""
    command: tuple[str, ...] = Field(default=(), repr=False)
    """Prints a kubeconfig, or an ExecCredential as an exec plugin does."""
    server: str = ""
    """With a command that prints an ExecCredential: the API server, if the hub does not tell."""
    certificate_authority: str = ""
    """With `server`: the file of its CA."""

    @model_validator(mode="after")
    def _has_a_method(self) -> Self:
        if not (self.context or self.kubeconfig or self.command):
            raise ValueError(f"give context, kubeconfig or command for {self.cluster}")
        if self.command and (self.context or self.kubeconfig):
            raise ValueError(
                f"give a command, or a context or kubeconfig, for {self.cluster}: there are both"
            )
        return self

    def for_cluster(self, name: str) -> "AccessEntry":
        """Return the entry with `{cluster}` replaced."""
        texts = {
            field: getattr(self, field).replace(CLUSTER, name)
            for field in ("context", "kubeconfig", "server", "certificate_authority")
        }
        texts["kubeconfig"] = str(expanded(texts["kubeconfig"])) if self.kubeconfig else ""
        command = tuple(word.replace(CLUSTER, name) for word in self.command)
        return self.model_copy(update={**texts, "command": command})


class ProxyServer(_Part):
    """The user server of OCM's cluster-proxy."""

    url: str = Field(min_length=1)
    certificate_authority: str = ""
    """The file of its CA; "": those that this machine trusts."""


class AccessFile(_Part):
    """The whole file; absent: empty."""

    cluster_proxy: ProxyServer | None = None
    clusters: tuple[AccessEntry, ...] = ()

    def entry_of(self, *names: str) -> AccessEntry | None:
        """Return the first entry that matches a cluster by one of its names, the managed cluster's first."""
        known = [name for name in names if name]
        for entry in self.clusters:
            if any(fnmatchcase(name, entry.cluster) for name in known):
                return entry.for_cluster(known[0])
        return None


def access_path(given: Path | None) -> Path:
    """Return the path of the file that is used."""
    if given:
        return given
    if named := os.environ.get(VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return expanded(base) / USUAL


def read_access_file(given: Path | None) -> AccessFile:
    """Return the file's content; an empty one if no file is named, and none is at the usual place.

    Raises BadSettings, which names the file and the field, and quotes no value.
    """
    path = access_path(given)
    try:
        content = load_yaml(path.read_bytes())
    except FileNotFoundError:
        if given or os.environ.get(VARIABLE):
            raise BadSettings(f"create {path}, or name another file: it does not exist") from None
        return AccessFile()
    except OSError as error:
        raise BadSettings(f"{path} cannot be read: {error.strerror}") from None
    except NotYaml as error:
        raise BadSettings(f"{path}: {error}") from None
    try:
        return AccessFile.model_validate({} if content is None else content)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False, include_context=False)
        problems = "; ".join(f"{'.'.join(map(str, d['loc'])) or 'the file'}: {d['msg']}" for d in details)
        raise BadSettings(f"{path}: {problems}") from None
