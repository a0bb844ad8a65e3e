"""`placement-ac completion`, and kubectl's completion of `kubectl placement`."""

from typing import Final

import click
from click.shell_completion import ShellComplete, get_completion_class

from placement_ac.cli.main import main, plugin

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_PLACEMENT_AC_COMPLETE"
"""click's environment variable for completions."""
_DIRECTIVES: Final = {"file": 0, "dir": 16}
"""Cobra's directives: 0 also completes files, 16 folders, 4 neither."""
_NO_FILES: Final = 4


@click.command("completion", epilog="Example:  placement-ac completion bash")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a SHELL for placement-ac.

    bash:  source <(placement-ac completion bash)

    zsh:   source <(placement-ac completion zsh)

    fish:  placement-ac completion fish | source
    """
    found = get_completion_class(shell)
    assert found  # noqa: S101  # click knows all of SHELLS
    click.echo(found(main, {}, "placement-ac", _VARIABLE).source())


def complete(words: list[str]) -> str:
    """Return the answer to `kubectl_complete-placement WORD…`; the last word is being typed.

    One completion per line, its help after a tab; then `:` and a directive (kubectl: plugin completion).
    """
    *before, typed = words or [""]
    found = ShellComplete(plugin, {}, plugin.name or "", _VARIABLE).get_completions(before, typed)
    lines = [
        f"{one.value}\t{one.help}" if one.help else str(one.value) for one in found if one.type == "plain"
    ]
    directive = next((_DIRECTIVES[one.type] for one in found if one.type in _DIRECTIVES), _NO_FILES)
    return "\n".join([*lines, f":{directive}"])
