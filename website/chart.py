"""
Write what the Helm chart's schema and README take from elsewhere: `make chart`.

The descriptions come from the comments of values.yaml, the settings under `config` from the code. Tests
compare the files with what this module returns.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from placement_ac.config.settings import Settings, is_duration, is_list, is_share

CHART: Final = Path(__file__).resolve().parents[1] / "charts" / "placement-ac"
VALUES: Final = CHART / "values.yaml"
SCHEMA: Final = CHART / "values.schema.json"
README: Final = CHART / "README.md"

OWN_VALUE: Final = (
    "placement_namespace", "kueue_namespace", "cluster_names", "dispatcher", "access_providers",
    "credentials_provision", "credentials_account", "credentials_form", "credentials_probe", "worker_setup",
    "worker_setup_template", "report_scores", "give_up",
)  # fmt: skip
"""Settings that have a value of their own, because rights, volumes or ports depend on them."""
NOT_IN_A_POD: Final = ("config", "kubeconfig", "context")
LISTENING: Final = ("metrics_bind_address", "health_probe_bind_address")
"""Settings that must not be empty: the ports of the container come from them."""

_COMMENT: Final = re.compile(r"( *)# (-- )?(.*)")
_KEY: Final = re.compile(r"( *)([\w-]+):")
_SHOWN: Final = 50
"""The longest default in the README's table. Unit: characters."""


def described(text: str) -> dict[str, str]:
    """Return the path of each value with a comment `# -- …` and that comment, in their order."""
    found: dict[str, str] = {}
    parents: list[tuple[int, str]] = []
    comment: list[str] | None = None
    for line in text.splitlines():
        if match := _COMMENT.fullmatch(line):
            starts, words = bool(match[2]), match[3]
            comment = [words] if starts else comment and [*comment, words]
        elif match := _KEY.match(line):
            parents = [
                *(parent for parent in parents if parent[0] < len(match[1])),
                (len(match[1]), match[2]),
            ]
            if comment:
                found[".".join(name for _, name in parents)] = " ".join(comment)
            comment = None
        else:
            comment = None
    return found


@cache
def _settings_schema() -> dict[str, Any]:
    made: dict[str, Any] = Settings.model_json_schema()["properties"]
    return made


def setting_schema(name: str) -> dict[str, Any]:
    """Return the JSON schema of a setting as one writes it in a file."""
    field = Settings.model_fields[name]
    made = _settings_schema()[name]
    made = next((one for one in made.get("anyOf", ()) if one["type"] != "null"), made)
    kept = {
        key: made[key] for key in ("type", "enum", "items", "pattern", "minimum", "maximum") if key in made
    }
    if is_duration(name) or is_share(name):
        kept = {"type": ["string", "number"]}
    elif is_list(name):
        kept["type"] = ["string", "array"]
    if name in LISTENING:
        kept["minLength"] = 1
    return {"description": " ".join((field.description or "").split())} | kept


def schema(before: dict[str, Any], values: str) -> dict[str, Any]:
    """Return the schema `before` with the descriptions in `values`, and the settings under `config`."""
    after: dict[str, Any] = json.loads(json.dumps(before))
    allowed = (name for name in Settings.model_fields if name not in (*OWN_VALUE, *NOT_IN_A_POD))
    after["properties"]["config"]["properties"] = {
        name.replace("_", "-"): setting_schema(name) for name in allowed
    }
    for path, words in described(values).items():
        where = after
        for part in path.split("."):
            where = where["properties"][part]
        where["description"] = words
    return after


def table(values: str) -> Iterator[str]:
    """Yield the lines of the table of values."""
    yield from ("| value | default | description |", "|---|---|---|")
    for path, words in described(values).items():
        default = yaml.safe_load(values)
        for part in path.split("."):
            default = default[part]
        shown = json.dumps(default)
        shown = f"`{shown}`" if len(shown) <= _SHOWN else "see `values.yaml`"
        yield f"| `{path}` | {shown} | {words} |"


def readme(before: str, values: str) -> str:
    """Return the README `before` with the table of values."""
    head = before.partition("\n## Values\n")[0]
    return "\n".join((head, "## Values", "", *table(values))) + "\n"


def main() -> None:
    """Write both files."""
    values = VALUES.read_text("utf-8")
    made = schema(json.loads(SCHEMA.read_text("utf-8")), values)
    SCHEMA.write_text(json.dumps(made, indent=2, ensure_ascii=False) + "\n", "utf-8")
    README.write_text(readme(README.read_text("utf-8"), values), "utf-8")


if __name__ == "__main__":
    main()
