"""
Write the chart's rules and the table of permissions from the roles under `config`: `make manifests`.

A test compares the files with what this module returns.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import yaml

from website.chart import CHART
from website.generated import ROOT
from website.markdown import section

RULES: Final = CHART / "templates" / "_rules.tpl"
INSTALL: Final = ROOT / "docs" / "install.md"

_FOLDERS: Final = {"default": ROOT / "config" / "rbac"} | {
    path.name: path for path in sorted((ROOT / "config" / "components").iterdir())
}
_PLACES: Final = {
    "ClusterRole": "hub",
    "Role": "placements",
    "kueue-system": "kueue",
    "placement-ac-system": "release",
    "default": "default",
}
"""The namespace of a role, or the kind of one that names none → its place in the chart."""
_SHOWN: Final = {
    "hub": "everywhere",
    "kueue": "Kueue's namespace",
    "lease": "Kueue's namespace",
    "placements": "each namespace of Placements",
}
_OWN_NAMES: Final = {
    "leases": '{{ dig "leaderElection" "resourceName" "" .Values.config | default "placement-ac" | quote }}',
    "secrets": "{{ .Values.credentials.account | quote }}",
    "configmaps": '{{ include "placement-ac.fullname" . | quote }}',
}
"""Resource → its object placement-ac in the chart, where a value names it."""


class Grant(NamedTuple):
    """A rule, its component, the suffix of its role, its place, and whether the controller has that role."""

    rule: dict[str, Any]
    component: str
    role: str
    place: str
    is_bound: bool


def grants() -> Iterator[Grant]:
    """Yield each rule of each role, in the order of the files."""
    for component, folder in _FOLDERS.items():
        for path in sorted(folder.rglob("*.yaml")):
            objects = list(yaml.safe_load_all(path.read_text("utf-8")))
            bound = [one["roleRef"]["name"] for one in objects if "roleRef" in one]
            for role in objects:
                name = role.get("metadata", {}).get("name", "")
                for rule in role.get("rules", ()):
                    place = _place(role, rule)
                    yield Grant(rule, component, name.removeprefix("placement-ac"), place, name in bound)


def _place(role: dict[str, Any], rule: dict[str, Any]) -> str:
    """In the chart, the Lease and the ConfigMaps with the capacity may be in a namespace of their own."""
    place = _PLACES[role["metadata"].get("namespace", role["kind"])]
    is_beside = rule["resources"] == ["leases"] or "placement-ac-capacity" in rule.get("resourceNames", ())
    return "lease" if place == "kueue" and is_beside else place


def rules() -> str:
    """Return the chart's rules: a named template for each place and role."""
    templates: dict[str, list[str]] = {}
    for grant in grants():
        text = yaml.safe_dump(grant.rule, default_flow_style=True, sort_keys=False, width=math.inf).strip()
        name = _OWN_NAMES.get(grant.rule["resources"][0], "placement-ac")
        line = re.sub(r"\[placement-ac(?!-)", f"[{name}", text)
        templates.setdefault(grant.place + grant.role, []).append(f"- {line}")
    lines = ["{{/* Made by `make manifests` from the roles in config; not edited by hand. */}}"]
    for name, of in templates.items():
        lines += [f'{{{{- define "placement-ac.rules.{name}" -}}}}', *of, "{{- end }}"]
    return "\n".join(lines) + "\n"


def permissions(before: str) -> str:
    """Return the page `before` with the table of the controller's permissions in place of its own."""
    rows = ["| component | API group | resource | verbs | where |", "|---|---|---|---|---|"]
    for rule, component, _, place, _ in (grant for grant in grants() if grant.is_bound):
        group = f"`{rule['apiGroups'][0]}`" if rule["apiGroups"][0] else "(core)"
        names = ", ".join(f"`{name}`" for name in rule.get("resourceNames", ()))
        for resource in rule["resources"]:
            shown = f"`{resource}` named {names}" if names else f"`{resource}`"
            verbs = ", ".join(rule["verbs"])
            rows.append(f"| `{component}` | {group} | {shown} | {verbs} | {_SHOWN[place]} |")
    old = section(before, "Permissions")
    introduction, _, rest = old.partition("\n| ")
    return before.replace(old, "\n".join((introduction, *rows, "", rest.partition("\n\n")[2])))


if __name__ == "__main__":
    RULES.write_text(rules(), "utf-8")
    INSTALL.write_text(permissions(INSTALL.read_text("utf-8")), "utf-8")
