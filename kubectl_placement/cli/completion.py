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
    items = ShellComplete(plugin, {}, plugin.name or "", _VARIABLE).get_completions(before, typed)
    plain = [item for item in items if item.type == "plain"]
    lines = [f"{item.value}\t{item.help}" if item.help else str(item.value) for item in plain]
    directive = next((_DIRECTIVES[item.type] for item in items if item.type in _DIRECTIVES), _NO_FILES)
    return "\n".join([*lines, f":{directive}"])
