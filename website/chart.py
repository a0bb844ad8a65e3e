"""
Write what the Helm chart's schema and README take from elsewhere: `make chart`.

The descriptions come from the comments of values.yaml, the settings under `config` from the code. Tests
compare the files with what this module returns.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml

from placement_ac.config.layout import LAYOUT
from placement_ac.config.settings import ITEM_PATTERNS, Settings, descriptions, is_duration, is_list, is_share
from placement_ac.core.api.durations import DURATION, NUMBER
from placement_ac.core.inputs.rights import RELEASE

CHART: Final = Path(__file__).resolve().parents[1] / "charts" / "placement-ac"
VALUES: Final = CHART / "values.yaml"
SCHEMA: Final = CHART / "values.schema.json"
README: Final = CHART / "README.md"

OWN_VALUE: Final = {
    "placement_namespace": "placements.namespaces",
    "kueue_namespace": "kueue.namespace",
    "cluster_names": "clusterNames",
    "dispatcher": "dispatcher.enabled",
    "access_providers": "clusterProfiles.accessProviders",
    "credentials_provision": "credentials.provision",
    "credentials_account": "credentials.account",
    "credentials_form": "credentials.form",
    "credentials_probe": "probing.enabled",
    "worker_setup": "workerSetup.enabled",
    "worker_setup_template": "workerSetup.template",
    "report_scores": "scores.enabled",
}
"""Setting → its own value, as rights, volumes or ports depend on it; the chart has these in _helpers.tpl."""
NOT_IN_A_POD: Final = ("config", "kubeconfig", "context")
LISTENING: Final = ("metrics_bind_address", "health_probe_bind_address")
"""Settings that must not be empty: the ports of the container come from them."""

_WRITTEN: Final[Mapping[str, Any]] = {
    "duration": {"type": ["string", "number"], "pattern": f"^({DURATION}|{NUMBER})$", "minimum": 0},
    "share": {
        "type": ["string", "number"],
        "pattern": r"^([0-9]{1,2}(\.[0-9]+)?%|0(\.[0-9]+)?)$",
        "minimum": 0,
        "exclusiveMaximum": 1,
    },
}
"""How one writes durations (a bare number is of seconds) and shares."""
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
    made = _settings_schema()[name]
    made = next((one for one in made.get("anyOf", ()) if one["type"] != "null"), made)
    kept = {
        key: made[key] for key in ("type", "enum", "items", "pattern", "minimum", "maximum") if key in made
    }
    if is_duration(name):
        kept = _WRITTEN["duration"] | {key: kept[key] for key in ("minimum",) if key in kept}
    elif is_share(name):
        kept = _WRITTEN["share"]
    elif is_list(name):
        kept["type"] = ["string", "array"]
    if name in ITEM_PATTERNS:
        item = f"({ITEM_PATTERNS[name].pattern})"
        kept |= {"items": {"type": "string", "pattern": f"^{item}$"}, "pattern": f"^({item}( *, *{item})*)?$"}
    if name == "kueue_version":
        kept["pattern"] = f"^({RELEASE.pattern})?$"
    if name in LISTENING:
        kept["minLength"] = 1
    return {"description": " ".join(descriptions()[name].split())} | kept


def _section_schema(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a section of the settings file, or of the whole file, by its layout."""
    made: dict[str, Any] = {}
    for key, entry in section.items():
        if not isinstance(entry, str):
            made[key] = {"type": "object", "additionalProperties": False, **_section_schema(entry)}
        elif entry in OWN_VALUE:
            made[key] = {"description": f"Set {OWN_VALUE[entry]} instead"}
        elif entry not in NOT_IN_A_POD:
            made[key] = setting_schema(entry)
    needed = [key for key, entry in section.items() if entry in LISTENING or _listens(entry)]
    return {"properties": made} | ({"required": needed} if needed else {})


def _listens(entry: str | Mapping[str, str]) -> bool:
    return not isinstance(entry, str) and not set(LISTENING).isdisjoint(entry.values())


def schema(before: dict[str, Any], values: str) -> dict[str, Any]:
    """Return the schema `before` with the descriptions in `values`, and the settings under `config`."""
    after: dict[str, Any] = json.loads(json.dumps(before))
    after["properties"]["config"] |= _section_schema(LAYOUT)
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
