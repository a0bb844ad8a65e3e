"""
A template of the queues on workers: YAML in a ConfigMap, with values of the ManagedCluster.

Pure. A text in it may have `{allocatable.RESOURCE}`, `{label.KEY}` or `{claim.NAME}`; and the first a factor:
`{allocatable.cpu * 0.8}`. They are replaced after the YAML is parsed, so no value changes its structure.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from placement_ac.core.api.constants import (
    ANNOTATION_TEMPLATE,
    CLUSTER_QUEUE,
    COHORT,
    KUEUE,
    RESOURCE_FLAVOR,
    TOPOLOGY,
)
from placement_ac.core.api.objects import Check, ManagedCluster
from placement_ac.core.api.quantities import format_milli
from placement_ac.core.inputs.state import Body
from placement_ac.core.safe_yaml import (
    TOO_MANY_ALIASES,
    VALUES_PER_CHARACTER,
    KubectlLoader,
    NotYaml,
    yaml_errors,
)

KINDS: Final = {kind.kind: kind for kind in (CLUSTER_QUEUE, RESOURCE_FLAVOR, COHORT, TOPOLOGY)}
"""The kinds that a template may hold: cluster-scoped ones of Kueue."""
MI: Final = 2**20
_PLACEHOLDER: Final = re.compile(
    r"\{\s*(?P<what>allocatable|label|claim)\.(?P<name>[^{}*\s]+)\s*(?:\*\s*(?P<factor>[0-9.]+)\s*)?\}"
)
_BRACES: Final = re.compile(r"\{[^{}]*\}")
_FACTOR: Final = re.compile(r"[0-9]{1,4}(\.[0-9]{1,6})?")


class TemplateProblem(Exception):
    """Its text says what to correct, and in which line. `template`: the ConfigMap; "": the hub's queues."""

    def __init__(self, text: str, template: str = "") -> None:
        super().__init__(text)
        self.template = template


def named_template(check: Check) -> str:
    """Return the ConfigMap that a check of ours names as its template; "": none."""
    return check.meta.annotations.get(ANNOTATION_TEMPLATE, "").strip() if check.ours else ""


def rendered(text: str, cluster: ManagedCluster) -> list[Body]:
    """Return the manifests for a cluster. Raises TemplateProblem."""
    try:
        with yaml_errors(TemplateProblem):
            return list(_documents(text, cluster))
    except NotYaml as error:
        raise TemplateProblem(str(error)) from None


def _documents(text: str, cluster: ManagedCluster) -> Iterator[Body]:
    loader = KubectlLoader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            if node.tag.endswith(":null"):
                continue
            line = node.start_mark.line + 1
            if _values(node, {}) > VALUES_PER_CHARACTER * len(text):
                raise TemplateProblem(TOO_MANY_ALIASES)
            _fill(node, cluster, set())
            yield _checked(loader.construct_document(node), line)
    finally:
        loader.dispose()


def _values(node: yaml.Node, known: dict[int, float]) -> float:
    """Return how many values a node stands for, with its aliases; infinitely many if it contains itself."""
    if id(node) not in known:
        known[id(node)] = math.inf
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for pair in node.value for part in pair] if pairs else node.value
        inner = () if isinstance(node, yaml.ScalarNode) else parts
        known[id(node)] = 1 + sum(_values(part, known) for part in inner)
    return known[id(node)]


def _checked(document: Any, line: int) -> Body:
    group = str(document.get("apiVersion", "")).partition("/")[0] if isinstance(document, dict) else ""
    if group != KUEUE or document.get("kind") not in KINDS:
        raise TemplateProblem(f"line {line}: write a manifest of {KUEUE}: {', '.join(KINDS)}")
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        raise TemplateProblem(f"line {line}: name the {document['kind']} in metadata.name")
    if not isinstance(document.get("spec", {}), dict):
        raise TemplateProblem(f"line {line}: spec is not an object")
    return dict(document)


def _fill(node: yaml.Node, cluster: ManagedCluster, done: set[int]) -> None:
    """Replace the placeholders of a document, each alias once."""
    if id(node) in done:
        return
    done.add(id(node))
    if isinstance(node, yaml.ScalarNode):
        if "{" in node.value:
            node.value, node.tag = _filled(node, cluster), "tag:yaml.org,2002:str"
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _fill(item, cluster, done)
    elif isinstance(node, yaml.MappingNode):
        _refuse_unquoted(node)
        for pair in node.value:
            for part in pair:
                _fill(part, cluster, done)


def _refuse_unquoted(node: yaml.MappingNode) -> None:
    """Raise TemplateProblem for a placeholder without quotes: to YAML, its braces are those of a mapping."""
    key = node.value[0][0] if node.flow_style and len(node.value) == 1 else None
    if isinstance(key, yaml.ScalarNode) and _PLACEHOLDER.fullmatch(f"{{{key.value}}}"):
        line = node.start_mark.line + 1
        raise TemplateProblem(f'line {line}: write "{{{key.value}}}" in quotes')


def _filled(node: yaml.ScalarNode, cluster: ManagedCluster) -> str:
    line = node.start_mark.line + 1

    def value(braces: re.Match[str]) -> str:
        found = _PLACEHOLDER.fullmatch(braces[0])
        factor = found["factor"] if found else None
        if not found or (factor and (found["what"] != "allocatable" or not _FACTOR.fullmatch(factor))):
            raise TemplateProblem(
                f"line {line}: write {{allocatable.RESOURCE}}, {{allocatable.RESOURCE * 0.9}}, {{label.KEY}}"
                f" or {{claim.NAME}}: {braces[0][:80]!r} is none of these"
            )
        return _value(found["what"], found["name"], float(factor or 1), cluster, line)

    return _BRACES.sub(value, node.value)


def _value(what: str, name: str, factor: float, cluster: ManagedCluster, line: int) -> str:
    if what == "allocatable":
        return whole_quantity(name, int(cluster.allocatable.get(name, 0) * factor))
    key = name if what == "label" else f"claim:{name}"
    if key not in cluster.labels:
        raise TemplateProblem(f"line {line}: give {cluster.meta.name} the {what} {name}: it has none")
    return cluster.labels[key]


def whole_quantity(resource: str, thousandths: int) -> str:
    """Return a quantity of a resource, rounded down: CPU to thousandths, bytes to Mi, others to ones."""
    in_bytes = resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-")
    step = 1 if resource == "cpu" else 1000 * (MI if in_bytes and thousandths >= 1000 * MI else 1)
    return format_milli(thousandths - thousandths % step)
