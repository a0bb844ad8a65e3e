"""`placement-ac run`: the controller."""

import asyncio
import contextlib
import gc
import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final, Literal

import click

from placement_ac.cli.documents import aligned
from placement_ac.cli.setting_options import setting_options
from placement_ac.config.layout import LAYOUT
from placement_ac.config.load import FILE_SETTING, PREFIX, LoadedSettings, flag_name, load
from placement_ac.config.settings import setting_as_flag, setting_text
from placement_ac.controller.manager import Manager
from placement_ac.core.api.errors import BadSettings, LoginFailed
from placement_ac.observability import logs
from placement_ac.observability.http import CannotListen

Form = Literal["table", "yaml", "json"]
SIGNAL_CHECK_SECONDS: Final = 0.25
"""A signal that comes just before the main thread waits does not wake it: then its handler runs this late."""


@setting_options
@click.command(
    "run",
    epilog=f"A setting may also be given as {PREFIX}<NAME> in the environment, or in the file of --config."
    "\n\nExample:  placement-ac run --drain-deadline 2h --print-settings",
)
@click.option("--print-settings", is_flag=True, help="Print the settings and the source of each, and exit.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["yaml", "json"]),
    help="The output format; the YAML is a settings file.  [default: a table]",
)
def command(print_settings: bool, output: Form | None, **flags: Any) -> None:
    """Run the controller."""
    if output and not print_settings:
        raise click.UsageError("use --output only with --print-settings")
    try:
        loaded = load(flags)
    except BadSettings as error:
        raise click.UsageError(str(error)) from None
    if print_settings:
        click.echo(shown(loaded, output or "table"))
        return
    settings = loaded.settings
    logs.configure(settings.log_format, settings.log_level)
    gc.freeze()  # what is loaded by now stays: the collector need not traverse it again
    try:
        run_until_signal(Manager(settings))
    except BadSettings as error:  # of a file that a setting names
        raise click.UsageError(str(error)) from None
    except (CannotListen, LoginFailed) as error:
        raise click.ClickException(str(error)) from None


def shown(loaded: LoadedSettings, form: Form) -> str:
    """Return the settings and their sources, without a final line break. The YAML is a settings file."""
    if form == "yaml":
        return "\n".join(_yaml_lines(loaded))
    if form == "json":
        documents = [
            {"name": flag_name(name), "value": setting_text(name, value), "source": loaded.sources[name]}
            for name, value in loaded.settings
        ]
        return json.dumps(documents, indent=2, ensure_ascii=False)
    rows = [("SETTING", "VALUE", "SOURCE")]
    rows += [
        (flag_name(name), setting_as_flag(name, value), loaded.sources[name])
        for name, value in loaded.settings
    ]
    return aligned(rows)


def _yaml_lines(loaded: LoadedSettings) -> Iterator[str]:
    yield f"# {_yaml_line(FILE_SETTING, FILE_SETTING, loaded)}"
    for key, entry in LAYOUT.items():
        if isinstance(entry, str):
            yield _yaml_line(key, entry, loaded)
        else:
            yield f"{key}:"
            yield from (f"  {_yaml_line(below, name, loaded)}" for below, name in entry.items())


def _yaml_line(key: str, name: str, loaded: LoadedSettings) -> str:
    """Return the line of a setting: a comment if it has no value."""
    value = getattr(loaded.settings, name)
    text = "" if value is None else json.dumps(setting_text(name, value), ensure_ascii=False)  # JSON is YAML
    return f"{'# ' if value is None and name != FILE_SETTING else ''}{key}: {text}  # {loaded.sources[name]}"


def run_until_signal(manager: Manager) -> None:
    """Run the controller until a signal comes, in another thread: in this one kopf would take the signals."""
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    def end(*_: object) -> None:
        with contextlib.suppress(RuntimeError):  # it has ended already
            loop.call_soon_threadsafe(stop.set)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end)

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(manager.run(stop))

    with ThreadPoolExecutor(1, thread_name_prefix="controller") as threads:
        running = threads.submit(work)
        while not wait((running,), SIGNAL_CHECK_SECONDS).done:
            pass
        running.result()
