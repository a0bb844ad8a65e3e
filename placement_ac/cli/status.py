"""`placement-ac status`: each check with its Placement, its clusters, its queues and its jobs."""

from collections.abc import Collection, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import click
from rich.tree import Tree

from placement_ac.cli.hub_options import (
    ReadingCommand,
    Where,
    look,
    look_again,
    looks,
    on_hub,
    tell_missing,
)
from placement_ac.cli.output import Form, emit, output
from placement_ac.cli.status_tree import tree_of
from placement_ac.cli.watch_output import Again
from placement_ac.core.api.constants import ADMISSION_CHECK, WATCHED_KINDS
from placement_ac.inspection.hub.hub_view import HubView
from placement_ac.inspection.hub.kinds import MADE, QUEUES, words_for
from placement_ac.inspection.status.check_status import branches
from placement_ac.inspection.status.model import Branch
from placement_ac.kube.client import Client

_SINGULAR: Final = f"{ADMISSION_CHECK.kind.lower()}.{ADMISSION_CHECK.group}"
_TYPES: Final = frozenset(words_for(ADMISSION_CHECK, "check"))
KINDS: Final = (*WATCHED_KINDS, *QUEUES, *MADE)


@click.command("status", cls=ReadingCommand, epilog="Example:  placement-ac status placement-demo2")
@click.argument("check", nargs=-1, callback=lambda _, __, value: tuple(map(_name_of, value)))
@looks
@output()
@click.option("-w", "--watch", is_flag=True, help="Show it again whenever it changes, until Ctrl-C.")
def command(where: Where, check: tuple[str, ...], form: Form, watch: bool) -> None:
    """Show checks with their Placements, clusters, queues and jobs.

    Of each CHECK, or of all AdmissionChecks that placement-ac answers: its clusters in their order, what each
    one is (listed, draining, selected, waiting, beyond, unusable) and why, its credentials, whether Kueue is
    connected to it, and how many Workloads run and wait there.
    """
    if watch and where.dump:
        raise click.UsageError("--watch needs a hub: a dump never changes")
    if watch:
        on_hub(where, lambda client: _follow(client, where, check, form))
        return
    shown = _Shown(look(where, KINDS).view, check)
    shown.tell_missing()
    if shown.branches or not check:
        emit(form, shown.document, shown.trees, lambda: shown.by_name)
    shown.complain()


def _name_of(word: str) -> str:
    """Return the NAME of NAME or TYPE/NAME, as `-o name` gives them."""
    kind, slash, name = word.rpartition("/")
    if slash and kind.lower() not in _TYPES:
        raise click.BadParameter(f"{word!r} is not the name of an AdmissionCheck")
    return name


async def _follow(client: Client, where: Where, check: Collection[str], form: Form) -> None:
    told = False
    with Again(form) as again:
        async with aclosing(look_again(client, where, KINDS)) as looked:
            async for one in looked:
                shown = _Shown(one.view, check)
                if not told:
                    shown.tell_missing()
                    shown.complain()
                told = True
                again.show(shown.document, shown.trees, shown.by_name)


@dataclass(frozen=True)
class _Shown:
    """The checks that are asked for, on one hub at one time; without names, all of them."""

    view: HubView
    names: Collection[str]

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        return branches(self.view, self.names)

    @property
    def document(self) -> dict[str, object]:
        rights = [str(right) for right in self.view.lacking]
        return {"checks": self.branches, "missingRights": rights}

    def trees(self, wide: bool) -> Iterator[Tree]:
        return (tree_of(branch, self.view.now, wide=wide) for branch in self.branches)

    @property
    def by_name(self) -> dict[str, Branch]:
        return {f"{_SINGULAR}/{branch.name}": branch for branch in self.branches}

    def tell_missing(self) -> None:
        """Tell the rights that are missing. Raises when no check can be shown for that."""
        tell_missing(self.view.lacking)
        if self.view.dump.live and (why := self.view.dump.why_unknown(ADMISSION_CHECK)):
            raise click.ClickException(f"the checks are {why}")

    def complain(self) -> None:
        """Say that there is none. Raises for those that were asked for and are not there, as kubectl does."""
        if not self.branches and not self.names:
            click.echo("No checks found", err=True)
        shown = {branch.name for branch in self.branches}
        told = [self._not_shown(name) for name in dict.fromkeys(self.names) if name not in shown]
        if told:
            raise click.ClickException("\nError: ".join(told))

    def _not_shown(self, name: str) -> str:
        for one in self.view.checks:
            if one.meta.name == name:
                return f'{ADMISSION_CHECK} "{name}" is answered by {one.controller}, not by placement-ac'
        return f'{ADMISSION_CHECK} "{name}" not found'
