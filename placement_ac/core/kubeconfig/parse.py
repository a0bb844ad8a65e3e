"""
Parse a kubeconfig's text into its parts, as Go does: the same types, and `null` means empty.

Pure. No refusal quotes the text.
"""

import re
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Never, TypeVar

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from placement_ac.core.kubeconfig.refusals import KubeconfigRefused, Refusal
from placement_ac.core.safe_yaml import NotYaml, yaml_errors

SIZE_MAX: Final = 256 * 1024
"""Bytes. A kubeconfig has a few thousand."""
MARKS_MAX: Final = 10_000
"""Colons, commas and line breaks, and what aliases expand to: it bounds the time that reading takes."""
_SAFE: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEPTH: Final = 50
_ENDLESS: Final = MARKS_MAX + 1
"""The size of an anchor that has not ended yet, or that does not exist."""
_WORDS: Final = {
    "model_type": "it should be a map",
    "list_type": "it should be a list",
    "dict_type": "it should be a map",
    "string_type": "it should be a string",
    "bool_type": "it should be true or false",
}


class _Shape(BaseModel):
    """A part of a kubeconfig; `null` means empty, as in Go."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="ignore", alias_generator=lambda name: name.replace("_", "-")
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value

    def __repr_args__(self) -> list[Never]:
        """Nothing: some of it is secret."""
        return []


class KubeconfigCluster(_Shape):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Any] = []


class KubeconfigVariable(_Shape):
    name: str = ""
    value: str = ""


class KubeconfigExec(_Shape):
    command: str = ""
    args: list[str] = []
    env: list[KubeconfigVariable] = []
    api_version: str = Field(default="", alias="apiVersion")
    install_hint: str = Field(default="", alias="installHint")
    provide_cluster_info: bool = Field(default=False, alias="provideClusterInfo")
    interactive_mode: str = Field(default="", alias="interactiveMode")


class KubeconfigAuthProvider(_Shape):
    name: str = ""
    config: dict[str, str] = {}


class KubeconfigUser(_Shape):
    token: str = ""
    token_file: str = Field(default="", alias="tokenFile")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    plugin: KubeconfigExec | None = Field(default=None, alias="exec")
    auth_provider: KubeconfigAuthProvider | None = None
    impersonates: str = Field(default="", alias="as")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Whom a caller acts as by `--as`, `--as-group` and `--as-uid`; empty: whom the kubeconfig says."""

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""

    def over(self, user: KubeconfigUser) -> KubeconfigUser:
        """Return a user of a kubeconfig with what is given here."""
        given = {"impersonates": self.user, "as_groups": [*self.groups], "as_uid": self.uid}
        return user.model_copy(update={name: value for name, value in given.items() if value})

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags for kubectl."""
        groups = (f"--as-group={group}" for group in self.groups)
        given = (("--as", self.user), ("--as-uid", self.uid))
        return (*(f"{name}={value}" for name, value in given if value), *groups)


NO_IMPERSONATION: Final = Impersonation()


class KubeconfigContext(_Shape):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(_Shape):
    name: str = ""
    cluster: KubeconfigCluster = KubeconfigCluster()


class NamedUser(_Shape):
    name: str = ""
    user: KubeconfigUser = KubeconfigUser()


class NamedContext(_Shape):
    name: str = ""
    context: KubeconfigContext = KubeconfigContext()


class Kubeconfig(_Shape):
    api_version: str = Field(default="", alias="apiVersion")
    kind: str = ""
    clusters: list[NamedCluster] = []
    users: list[NamedUser] = []
    contexts: list[NamedContext] = []
    current_context: str = ""


def parse_kubeconfig(text: bytes) -> Kubeconfig:
    """Return the parts of a Secret's kubeconfig, whatever they hold. Raises KubeconfigRefused."""
    if len(text) > SIZE_MAX:
        raise KubeconfigRefused(Refusal.TOO_LARGE)
    if sum(map(text.count, (b":", b",", b"\n"))) > MARKS_MAX:
        raise KubeconfigRefused(Refusal.TOO_MANY)
    try:
        return _config(_loaded(text))
    except NotYaml:
        raise KubeconfigRefused(Refusal.NOT_YAML) from None


def parse_own_kubeconfig(text: bytes) -> Kubeconfig:
    """Return the parts of the user's own kubeconfig: it has any size, and may be empty.

    Raises KubeconfigRefused, and NotYaml, which has the line.
    """
    content = _loaded(text)
    return Kubeconfig() if content is None else _config(content)


def _config(content: Any) -> Kubeconfig:
    config = validate_shape(Kubeconfig, content)
    if config.kind not in ("", "Config") or config.api_version not in ("", "v1"):
        raise KubeconfigRefused(Refusal.NOT_CONFIG)
    return config


def _loaded(text: bytes) -> Any:
    """Return the first document. Raises KubeconfigRefused, NotYaml."""
    if text.lstrip().startswith(b"{"):  # as generated ones are, and JSON is read ten times as fast
        try:
            content = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass  # it may still be YAML
        else:
            if text.count(b"{") + text.count(b"[") > _DEPTH and _is_deeper(content, _DEPTH):
                raise KubeconfigRefused(Refusal.TOO_DEEP)
            return content
    try:
        with yaml_errors(KubeconfigRefused):
            _refuse_bombs(text)
            return _Loader(text).get_data()  # the first document, as Go
    except NotYaml as error:
        if error.is_too_deep:
            raise KubeconfigRefused(Refusal.TOO_DEEP) from None
        raise


class _Loader(_SAFE):  # type: ignore[valid-type,misc]  # the C one where there is one
    """Reads dates, times and `=` as strings, as Go does (sigs.k8s.io/yaml, goyaml.v2/resolve.go)."""

    yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}
    bool_values: ClassVar = yaml.SafeLoader.bool_values | {"y": True, "n": False}


_TAG: Final = "tag:yaml.org,2002:"
_NUMBER: Final = re.compile(
    r"[-+]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|([0-9][0-9_]*(\.[0-9_]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?"
    r"|\.(inf|Inf|INF))|\.(nan|NaN|NAN)"
)


def _number(_: object, node: yaml.ScalarNode) -> float:
    """Return any number: no field that is read is one."""
    if not _NUMBER.fullmatch(node.value):
        raise KubeconfigRefused(Refusal.NOT_YAML)
    return 0.0


for _kind, _pattern, _first in (
    (
        "bool",
        r"[yYnN]|yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
        "yYnNtTfFoO",
    ),
    ("null", r"|~|null|Null|NULL", ["", "~", "n", "N"]),
    ("float", _NUMBER.pattern, "-+.0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(_TAG + _kind, re.compile(rf"(?:{_pattern})\Z"), list(_first))
for _kind in ("int", "float"):
    _Loader.add_constructor(_TAG + _kind, _number)
_Loader.add_constructor(f"{_TAG}timestamp", yaml.SafeLoader.construct_yaml_str)


def _is_deeper(content: Any, depth: int) -> bool:
    if not isinstance(content, (dict, list)):
        return False
    inner = content.values() if isinstance(content, dict) else content
    return depth == 0 or any(_is_deeper(value, depth - 1) for value in inner)


def _refuse_bombs(text: bytes) -> None:
    """Refuse deep nesting, which ends the process in the C loader, and aliases that multiply."""
    nodes, aliased = 0, 0
    open_: list[tuple[str | None, int]] = []
    sizes: dict[str | None, int] = {}
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((event.anchor, nodes))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_.pop()
            sizes[anchor] = nodes - before
        elif isinstance(event, yaml.ScalarEvent):
            sizes[event.anchor] = 1
        elif isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor, _ENDLESS)
            nodes, aliased = nodes + size, aliased + size
        nodes += isinstance(event, yaml.NodeEvent)
        if len(open_) > _DEPTH:
            raise KubeconfigRefused(Refusal.TOO_DEEP)
        if aliased > MARKS_MAX:
            raise KubeconfigRefused(Refusal.ALIASES)


_S = TypeVar("_S", bound=_Shape)


def validate_shape(shape: type[_S], content: Any) -> _S:
    """Return a part of a kubeconfig. Raises KubeconfigRefused, which names the field and not its content."""
    try:
        return shape.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        why = _WORDS.get(first["type"], first["msg"])
        raise KubeconfigRefused(
            Refusal.SHAPE.format(field=where, why=why) if where else Refusal.NO_MAP
        ) from None
