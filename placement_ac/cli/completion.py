"""`placement-ac completion`."""

from typing import Final

import click
from click.shell_completion import get_completion_class

from placement_ac.cli.main import main

SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_PLACEMENT_AC_COMPLETE"
"""click's environment variable for completions."""


@click.command("completion", epilog="Example:  placement-ac completion bash")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a SHELL for placement-ac.

    bash:  source <(placement-ac completion bash)

    zsh:   source <(placement-ac completion zsh)

    fish:  placement-ac completion fish | source
    """
    complete = get_completion_class(shell)
    assert complete  # noqa: S101  # click knows all of SHELLS
    click.echo(complete(main, {}, "placement-ac", _VARIABLE).source())
