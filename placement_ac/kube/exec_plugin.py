"""
Run a credential plugin as client-go does (plugin/pkg/client/auth/exec), and read what it gives.

- A plugin gets our environment, the variables of its configuration, and KUBERNETES_EXEC_INFO: an
  ExecCredential with the cluster, if `provideClusterInfo` says so. It prints one with a token, or a
  certificate and its key, in JSON or YAML.
- It gets our terminal, if there is one and `interactiveMode` is not Never; Always fails without one.
- With a terminal it takes the time that the user takes. Otherwise it has a session of its own, which is ended
  with all that it started, when it has ended, or its time has, or the caller is cancelled.

Its output is used for the credentials only, and never quoted. Its stderr is for the user: `show` gets it,
without control characters, up to a limit.
"""

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import orjson
from pydantic import AwareDatetime, BeforeValidator, Field, ValidationError

from placement_ac.core.api.errors import PlacementAcError
from placement_ac.core.api.shapes import ApiModel
from placement_ac.core.safe_yaml import NotYaml, first_document

API_VERSIONS: Final = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
InteractiveMode = Literal["", "Never", "IfAvailable", "Always"]
Show = Callable[[str], None]
"""Gets the text that a plugin writes to stderr, a part at a time."""

MAX_OUTPUT_BYTES: Final = 1_000_000
"""A plugin that prints more is stopped: an ExecCredential has some KB."""
MAX_SHOWN: Final = 10_000
"""The most characters of stderr that are shown."""
MAX_QUOTED: Final = 500
"""The most characters of stderr that an error quotes: its end."""
PLUGIN_SECONDS: Final = 60.0
"""How long a plugin without a terminal may take."""
_CLUSTER_FIELDS: Final = (
    "server",
    "tls-server-name",
    "insecure-skip-tls-verify",
    "certificate-authority-data",
    "proxy-url",
)
"""The fields of the cluster that a plugin gets."""
_CONFIG_EXTENSION: Final = "client.authentication.k8s.io/exec"
"""Kubernetes: the name of the cluster's extension that a plugin gets as its `config`."""
_LOOK_SECONDS: Final = 0.2
"""How soon it is noticed that a plugin has ended whose child keeps its output open."""
_END_SECONDS: Final = 0.01
"""The same for a plugin that has closed its output: most end at once."""
_KILL_SECONDS: Final = 1.0


class PluginFailed(PlacementAcError):
    """Why there are no credentials: the plugin, and what to do."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """How a plugin is run. Its repr shows neither its arguments nor its variables."""

    command: str
    api_version: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    interactive_mode: InteractiveMode = "Never"
    install_hint: str = ""


_Text = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""Null is "", as in Go."""


class ExecCredentials(ApiModel):
    """The `status` of a plugin's ExecCredential. Its repr contains no secret."""

    token: _Text = Field(default="", repr=False)
    client_certificate_data: _Text = Field(default="", repr=False)
    client_key_data: _Text = Field(default="", repr=False)
    expiration_timestamp: AwareDatetime | None = None


class _ExecCredential(ApiModel):
    api_version: str
    kind: Literal["ExecCredential", ""] | None = ""
    """Without one, client-go takes it for an ExecCredential."""
    status: ExecCredentials


def cluster_info(cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a plugin gets of a kubeconfig's `cluster`."""
    return {key: cluster[key] for key in _CLUSTER_FIELDS if cluster.get(key)} | _config(cluster)


async def run_plugin(
    plugin: ExecPlugin, cluster: Mapping[str, Any] | None, show: Show | None = None
) -> ExecCredentials:
    """Run a plugin, which gets `cluster`, and return its credentials. Raises PluginFailed.

    Without `show`, its stderr is dropped.
    """
    return parse_credentials(await plugin_output(plugin, cluster, show), plugin)


async def plugin_output(
    plugin: ExecPlugin, cluster: Mapping[str, Any] | None, show: Show | None = None
) -> bytes:
    """Run a plugin in the same way, and return what it prints. Raises PluginFailed."""
    if plugin.api_version not in API_VERSIONS:
        raise PluginFailed(
            f"set the apiVersion of plugin {plugin.command} to {API_VERSIONS[0]}: it has another"
        )
    interactive = _is_interactive(plugin)
    messages = _Messages(show) if show else None
    process = await _start(plugin, cluster, interactive=interactive, quiet=show is None)
    try:
        async with asyncio.timeout(None if interactive else PLUGIN_SECONDS):
            output = await _read(process, messages)
    except TimeoutError:
        why = f"was stopped: it gave no credentials within {PLUGIN_SECONDS:g} s"
        raise PluginFailed(f"plugin {plugin.command} {why}{_detail(messages)}") from None
    finally:
        await _end(process, alone=not interactive)
    if output is None:
        why = "was stopped: it printed more than 1 MB"
        raise PluginFailed(f"plugin {plugin.command} {why}; run it by hand to see why")
    if process.returncode:
        why = f"ended with code {process.returncode}"
        raise PluginFailed(f"plugin {plugin.command} {why}{_detail(messages)}")
    return output


def _is_interactive(plugin: ExecPlugin) -> bool:
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if plugin.interactive_mode == "Always" and not terminal:
        raise PluginFailed(
            f"run this in a terminal: plugin {plugin.command} needs one (its interactiveMode is Always)"
        )
    return terminal and plugin.interactive_mode != "Never"


async def _start(
    plugin: ExecPlugin, cluster: Mapping[str, Any] | None, *, interactive: bool, quiet: bool
) -> asyncio.subprocess.Process:
    spec: dict[str, Any] = {"interactive": interactive} | ({"cluster": cluster} if cluster else {})
    request = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    try:
        return await asyncio.create_subprocess_exec(
            plugin.command,
            *plugin.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL if quiet else asyncio.subprocess.PIPE,
            env={**os.environ, **plugin.env, "KUBERNETES_EXEC_INFO": orjson.dumps(request).decode()},
            # With a session of its own, it would not get the terminal's input.
            start_new_session=not interactive,
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "its arguments are impossible"
        hint = f"; {_printable(plugin.install_hint)[:MAX_QUOTED]}" if plugin.install_hint else ""
        raise PluginFailed(f"plugin {plugin.command} cannot be started: {why}{hint}") from None


async def _read(process: asyncio.subprocess.Process, messages: "_Messages | None") -> bytes | None:
    """Return the output of a process that has ended; None if it is longer than MAX_OUTPUT_BYTES."""
    errors = asyncio.ensure_future(_read_messages(process, messages)) if messages else None
    try:
        output = await _read_output(process)
        if errors and output is not None:  # a child may keep it open
            await asyncio.wait((errors,), timeout=_LOOK_SECONDS)
        return output
    finally:
        if errors:
            errors.cancel()


async def _read_output(process: asyncio.subprocess.Process) -> bytes | None:
    assert process.stdout  # noqa: S101  # it is a pipe
    output = bytearray()
    while len(output) <= MAX_OUTPUT_BYTES:
        ended = process.returncode is not None
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                part = await process.stdout.read(MAX_OUTPUT_BYTES)
        except TimeoutError:
            if ended:  # it has ended, and a child that it left keeps its output open
                return bytes(output)
            continue
        if not part:
            # Not wait(): in some versions of Python, it waits for a child that keeps stderr open, too.
            while process.returncode is None:  # noqa: ASYNC110  asyncio tells of it no other way
                await asyncio.sleep(_END_SECONDS)
            return bytes(output)
        output += part
    return None


async def _read_messages(process: asyncio.subprocess.Process, messages: "_Messages") -> None:
    assert process.stderr  # noqa: S101  # it is a pipe
    while part := await process.stderr.read(4096):
        messages.add(part)


async def _end(process: asyncio.subprocess.Process, *, alone: bool) -> None:
    """End a process, and with `alone` its group: what it started may outlive it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: the latter for a group of zombies
        if alone:
            os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            process.kill()
    if process.returncode is None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _KILL_SECONDS)
    # Its pipes: left to the garbage collector, they complain of a loop that is closed by then.
    process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001  asyncio has no other way


class _Messages:
    """The stderr of a plugin: shown as it comes, and quoted when it fails."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._left = MAX_SHOWN
        self._end = ""

    def add(self, part: bytes) -> None:
        text = "".join(map(_printable, self._decoder.decode(part).splitlines(keepends=True)))
        self._end = (self._end + text)[-2 * MAX_QUOTED :]
        shown, self._left = text[: self._left], max(self._left - len(text), 0)
        if shown:
            self._show(shown)

    def __str__(self) -> str:
        text = " ".join(self._end.split())
        return text if len(text) <= MAX_QUOTED else f"… {text[-MAX_QUOTED:]}"


def _detail(messages: _Messages | None) -> str:
    return f": {messages}" if messages and str(messages) else ": run it by hand to see why"


def _printable(line: str) -> str:
    """Return a text without control and format characters, but for its line breaks."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in line.replace("\r\n", "\n"))


def _config(cluster: Mapping[str, Any]) -> dict[str, Any]:
    extensions = cluster.get("extensions")
    for entry in extensions if isinstance(extensions, list) else ():
        if isinstance(entry, dict) and entry.get("name") == _CONFIG_EXTENSION:
            return {"config": entry.get("extension")}
    return {}


def parse_credentials(output: bytes, plugin: ExecPlugin) -> ExecCredentials:
    """Return the credentials in an ExecCredential that a plugin has printed. Raises PluginFailed."""
    try:
        # As client-go chooses: a text that begins like JSON is no YAML.
        read = orjson.loads if output.lstrip().startswith(b"{") else first_document
        credential = _ExecCredential.model_validate(read(output))
    except (orjson.JSONDecodeError, NotYaml):
        raise PluginFailed(f"plugin {plugin.command} gave neither JSON nor YAML") from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors(include_input=False)[0]["loc"])) or "the whole"
        raise PluginFailed(
            f"plugin {plugin.command} gave no ExecCredential that can be read: {where}"
        ) from None
    if credential.api_version != plugin.api_version:
        raise PluginFailed(f"plugin {plugin.command} does not speak {plugin.api_version}")
    return credential.status
