"""
Write YAML that every reader takes for what it was: kubectl, PyYAML, YAML 1.2.

Pure. A text that one of them would read as a number, a boolean or null is put in quotes: `1e3`, `08`, `0o10`
and `y` are no texts to kubectl, `1:30` and `2026-01-01` are none to PyYAML.
"""

import yaml

from placement_ac.core.api.printable import NOT_SHOWN, visible
from placement_ac.core.safe_yaml import is_text


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # whichever was built
    """The C implementation, if available: it is ten times as fast."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def _scalar(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Return a text between double quotes if it needs escapes: YAML has them only there."""
    style = '"' if NOT_SHOWN.search(text) else None if is_text(text) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _scalar)


def to_yaml(
    *documents: object, width: int = 1000, flow: bool | None = False, explicit_start: bool | None = None
) -> str:
    """Return documents of JSON types as YAML, with escapes for what terminals would obey, or not show.

    `width`: columns; `flow`: None writes the innermost lists and maps on one line each.
    """
    text: str = yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=width,
        default_flow_style=flow,
        explicit_start=explicit_start,
    )
    return visible(text)
