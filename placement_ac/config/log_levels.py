"""Log levels, for all modules or for one: the setting `log-level`."""

import difflib
import logging
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

LEVELS: Final = {
    name: logging.getLevelNamesMapping()[name.upper()] for name in ("debug", "info", "warning", "error")
}


def parse_log_levels(values: Iterable[str]) -> Mapping[str, int]:
    """Return the level of each module that is named (`kube.client=debug`) and, by "", of all others.

    The level of a package applies to its modules. Raises ValueError, which says what is possible.
    """
    levels: dict[str, int] = {}
    for part in values:
        module, names_one, level = part.rpartition("=")
        if level not in LEVELS:
            raise ValueError(f"{level!r} is no level; known are {', '.join(LEVELS)}")
        if names_one and module not in modules():
            near = difflib.get_close_matches(module, modules(), n=1)
            several = (name for name in modules() if "." not in name)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(several)}"
            raise ValueError(f"there is no module {module!r}; {hint}")
        if module in levels:
            raise ValueError(f"{module or 'the level of all modules'} is given twice")
        levels[module] = LEVELS[level]
    return {"": logging.INFO} | levels


@cache
def modules() -> tuple[str, ...]:
    """Return the modules of this program, by the names of their files; of those in packages with dots."""
    root = Path(__file__).parents[1]
    paths = (path.relative_to(root).with_suffix("").parts for path in root.rglob("*.py"))
    names = {".".join(part for part in path if part != "__init__") for path in paths}
    return tuple(sorted(names - {"", "__main__"}))
