"""kubectl's completion of `kubectl placement`."""

from typing import Final

from click.shell_completion import ShellComplete

from kubectl_placement.cli.main import plugin

_VARIABLE: Final = "_KUBECTL_PLACEMENT_COMPLETE"
"""click's environment variable for completions; unused, as kubectl calls `complete`."""
_DIRECTIVES: Final = {"file": 0, "dir": 16}
"""Cobra's directives: 0 also completes files, 16 folders, 4 neither."""
_NO_FILES: Final = 4


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
