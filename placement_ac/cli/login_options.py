"""
The options that say which hub a command speaks to, and its client.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from placement_ac.core.api.durations import parse_seconds
from placement_ac.core.api.printable import one_line
from placement_ac.core.kubeconfig.parse import Impersonation
from placement_ac.kube.client import COMMAND_RETRIES, Client
from placement_ac.kube.login import Login

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HubLogin:
    """Which hub; None: as kubectl chooses."""

    kubeconfig: Path | None = None
    context: str | None = None
    as_user: str | None = None
    as_groups: tuple[str, ...] = ()
    as_uid: str | None = None

    @property
    def impersonation(self) -> Impersonation:
        return Impersonation(self.as_user or "", self.as_groups, self.as_uid or "")


def option_group(
    argument: str, group: Callable[..., Any], *options: click.Option
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds `options`; the command gets `group(**values)` as one `argument`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(**values: Any) -> Any:
            mine = {option.name: values.pop(option.name) for option in options}
            return command(**{argument: group(**mine)}, **values)

        params = [*getattr(command, "__click_params__", ()), *reversed(options)]
        called.__click_params__ = params  # type: ignore[attr-defined]  # as click keeps them, in reverse order
        return called

    return add


def duration(value: str) -> timedelta:
    """Return the value of an option: the `type` of such options. Raises BadParameter."""
    seconds = parse_seconds(value)
    if seconds is None or not 0 <= seconds <= timedelta.max.total_seconds():
        raise click.BadParameter("use a duration like 90s, 5m or 1h30m")
    return timedelta(seconds=seconds)


class _Kubeconfig(click.Path):
    """A file; an empty word is none, as for kubectl: `--kubeconfig "$CONFIG"` in a script."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(value, param, ctx) if value else None


FILE: Final = click.Path(dir_okay=False, path_type=Path)
LOGIN: Final = (
    click.Option(["--kubeconfig"], type=_Kubeconfig(dir_okay=False, path_type=Path), help="The kubeconfig."),
    click.Option(["--context"], help="The context in the kubeconfig."),
    click.Option(["--as", "as_user"], metavar="USER", help="Act as this user, as with kubectl."),
    click.Option(
        ["--as-group", "as_groups"], metavar="GROUP", multiple=True, help="Act as one of this group, too."
    ),
    click.Option(["--as-uid"], metavar="UID", help="Act as the user with this UID, too."),
)
login_options = option_group("where", HubLogin, *LOGIN)
kueue_namespace_option = click.option(
    "--kueue-namespace",
    default="kueue-system",
    show_default=True,
    help="The namespace in which Kueue reads Secrets.",
)


def login_to(where: HubLogin) -> Login:
    """Return the login to the hub; a credential plugin's messages are shown, as by kubectl."""
    return Login(
        where.kubeconfig,
        where.context,
        impersonation=where.impersonation,
        show=lambda text: click.echo(text, nl=False, err=True),
    )


def with_client(where: HubLogin, work: Callable[[Client], Awaitable[T]], *, announces: bool = False) -> T:
    """Run `work` with a client of the hub.

    `announces`: name the hub first, on stderr; for commands that write.
    """

    async def work_with_client() -> T:
        login = login_to(where)
        if announces:
            click.echo(f"Hub: {one_line(login.described_as)}", err=True)
        async with Client(login, retries=COMMAND_RETRIES) as client:
            return await work(client)

    return asyncio.run(work_with_client())
