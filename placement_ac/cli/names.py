"""
Complete the names of objects on the hub in a shell.

One list request per kind, of at most `MAX_NAMES` objects, within `LIMIT_SECONDS`. Whatever goes wrong, there
are no completions and no text: the user is typing a command, and the command itself reports the error.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Any, Final

import click

from placement_ac.core.api.constants import ADMISSION_CHECK, MANAGED_CLUSTER, OUR_CONTROLLER, Kind
from placement_ac.core.api.errors import NotFound
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login

LIMIT_SECONDS: Final = 2.0
MAX_NAMES: Final = 500
_PLUGIN_SECONDS: Final = 0.2
"""The time beyond the limit that the answer gets; a login whose plugin hangs cannot be cancelled."""

_Names = dict[Kind, list[str]]


def check_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of the name of a check that placement-ac answers."""
    return others(starting(typed, names_in(context, ADMISSION_CHECK)), context, parameter)


def cluster_names(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Return the completions of the name of a managed cluster."""
    return others(starting(typed, names_in(context, MANAGED_CLUSTER)), context, parameter)


def starting(typed: str, names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name for name in names if name.startswith(typed)))


def words_before(context: click.Context, parameter: click.Parameter) -> tuple[str, ...]:
    """Return the words that the argument has so far."""
    value = context.params.get(parameter.name or "")
    return tuple(value) if isinstance(value, tuple | list) else ()


def others(names: list[str], context: click.Context, parameter: click.Parameter) -> list[str]:
    given = words_before(context, parameter)
    return [name for name in names if name not in given]


# -- reading


def names_in(context: click.Context, *kinds: Kind) -> Sequence[str]:
    """Return the names of these kinds on the hub that the words before name, sorted for each kind."""
    params = context.params
    if params.get("dump_files") or params.get("source"):
        return ()
    names = _in_time(lambda: _read(params, kinds))
    return [name for kind in kinds for name in sorted(names.get(kind, ()))]


def _in_time(read: Callable[[], _Names]) -> _Names:
    """Return the answer of `read`, which runs silently in a thread; nothing if it fails or takes too long.

    The thread is a daemon: a credential plugin that hangs must not keep the shell.
    """
    answers: list[_Names] = []

    def work() -> None:
        with suppress(Exception):  # whatever it is: a shell that completes a word shows no error
            answers.append(read())

    with _silence():
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(LIMIT_SECONDS + _PLUGIN_SECONDS)
    return answers[0] if answers else {}


@contextmanager
def _silence() -> Iterator[None]:
    """Discard the text of logs, and that of a credential plugin, which writes to the file descriptor."""
    nowhere, stderr = os.open(os.devnull, os.O_WRONLY), os.dup(2)
    os.dup2(nowhere, 2)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        os.close(nowhere)


def _read(params: dict[str, Any], kinds: Sequence[Kind]) -> _Names:
    login = Login(params.get("kubeconfig"), params.get("context"))
    return asyncio.run(_read_all(login, kinds, params.get("namespace") or ()))


async def _read_all(login: Login, kinds: Sequence[Kind], namespaces: Sequence[str]) -> _Names:
    async with asyncio.timeout(LIMIT_SECONDS), Client(login) as client:
        lists = [_list(client, kind, namespaces) for kind in kinds]
        answers = await asyncio.gather(*lists, return_exceptions=True)
    pairs = zip(kinds, answers, strict=True)
    return {kind: names for kind, names in pairs if not isinstance(names, BaseException)}


async def _list(client: Client, kind: Kind, namespaces: Sequence[str]) -> list[str]:
    """Return the names of a kind, in the newest version that the hub serves; of checks only ours."""
    namespace = namespaces[0] if kind.namespaced and len(namespaces) == 1 else None
    for version in kind.versions:
        try:
            path = kind.at(version).path(namespace)
            answer = await client.request("GET", path, query={"limit": str(MAX_NAMES)})
        except NotFound:
            continue
        items = [item for item in answer["items"] if kind is not ADMISSION_CHECK or _is_ours(item)]
        pairs = ((item["metadata"]["name"], item["metadata"].get("namespace")) for item in items)
        wanted = [name for name, space in pairs if not kind.namespaced or space in (namespaces or (space,))]
        return [name for name in wanted if _is_word(name)]
    return []


def _is_ours(check: dict[str, Any]) -> bool:
    return bool(check["spec"]["controllerName"] == OUR_CONTROLLER)


def _is_word(name: object) -> bool:
    """Whether a shell can take it as one word: names of objects are, but any server may have answered."""
    return isinstance(name, str) and name.isascii() and name.replace("-", "").replace(".", "").isalnum()
