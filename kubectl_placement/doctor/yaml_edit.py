"""
Edit a YAML file with a short awk program that keeps all other lines and comments.

Pure. There is no program for a file whose format makes this impossible.
"""

from typing import Any, Final

import yaml

from placement_ac.core.safe_yaml import NotYaml, yaml_errors

_INDENT: Final = 2


def awk_program(text: str, path: tuple[str, ...], value: object) -> str | None:
    """Return the awk program that sets the field at `path`; None if the file's format makes it impossible.

    `value` is appended to a list and merged into a map. The program fails on empty input.
    """
    try:
        with yaml_errors():
            root = yaml.compose(text)
    except NotYaml:
        return None
    found = _node_path(root, path) if isinstance(root, yaml.MappingNode) and not root.flow_style else None
    changed = _change(text, path, value, found) if found else None
    return None if changed is None or "'" in changed else changed


def _node_path(root: yaml.MappingNode, path: tuple[str, ...]) -> list[tuple[Any, Any]]:
    """Return the pairs of nodes along `path`, as far as they exist; the root first."""
    pairs: list[tuple[Any, Any]] = [(None, root)]
    for step in path:
        node = pairs[-1][1]
        entries = node.value if isinstance(node, yaml.MappingNode) else ()
        pair = next(((key, child) for key, child in entries if key.value == step), None)
        if pair is None:
            break
        pairs.append(pair)
    return pairs


def _change(text: str, path: tuple[str, ...], value: object, pairs: list[tuple[Any, Any]]) -> str | None:
    depth = len(pairs) - 1
    key, node = pairs[-1]
    rest = path[depth:]
    if not rest and not isinstance(node, yaml.CollectionNode):
        if isinstance(value, dict | list):
            return None
        scalar = yaml.safe_dump(value).removesuffix("...\n").strip()
        line = f"{' ' * key.start_mark.column}{path[-1]}: {scalar}"
        return _rule(text, key, f"{{$0={_quoted(line)}}}", before=True)
    if not rest and isinstance(node, yaml.MappingNode) and not isinstance(value, dict):
        return None
    added = _lines(rest, value, _column(key, node), entry=isinstance(node, yaml.SequenceNode))
    if key is None:
        return f"1; END{{print {_quoted(added)}; exit !NR}}"
    if getattr(node, "flow_style", False) or (isinstance(node, yaml.ScalarNode) and node.value):
        return None
    return _rule(text, key, f"{{print {_quoted(added)}}}", before=False)


def _rule(text: str, key: yaml.Node, action: str, *, before: bool) -> str | None:
    """Return the program that changes the line of a key and prints every line."""
    line = text.splitlines()[key.start_mark.line]
    head = line[: key.end_mark.column] + ":"
    if sum(one.startswith(head) for one in text.splitlines()) != 1 or not line.startswith(head):
        return None
    on = f"/^{head.replace('/', '[/]').replace('.', '[.]')}/{action}"
    return f"{on} 1; END{{exit !NR}}" if before else f"1; {on} END{{exit !NR}}"


def _column(key: yaml.Node | None, node: Any) -> int:
    """Return the column of the values below a key."""
    if isinstance(node, yaml.CollectionNode) and node.value:
        # An entry of a list begins at its dash: the start of the list's node.
        first = node.value[0][0] if isinstance(node, yaml.MappingNode) else node
        return int(first.start_mark.column)
    return key.start_mark.column + _INDENT if key else 0


def _lines(rest: tuple[str, ...], value: object, column: int, *, entry: bool) -> str:
    nested: Any = [value] if entry else value
    for step in reversed(rest):
        nested = {step: nested}
    dumped = yaml.safe_dump(nested, default_flow_style=False, sort_keys=False)
    return "\n".join(" " * column + line for line in dumped.splitlines())


def _quoted(text: str) -> str:
    """Return an awk string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
