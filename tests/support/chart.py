"""The Helm chart: rendered with Helm itself, and compared with kustomize."""

import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.installation import (
    CONFIG,
    NAME,
    NAMESPACE,
    Object,
    controller_of,
    kubectl,
    pod_of,
    rendered,
)

try:
    import helm_python as helm
except ImportError as error:  # no wheel for this platform: see pyproject.toml
    if os.environ.get("CI"):
        raise
    pytest.skip(f"helm-python-sdk: {error}", allow_module_level=True)

CHART = CONFIG.parent / "charts" / "placement-ac"
IMAGE = "registry.example/placement-ac"
TAG = "v9.9.9"
DIGEST = f"sha256:{'0' * 64}"
GIVEN: Object = {"image": {"repository": IMAGE}}
"""The least values that can be rendered."""

# -- what the chart adds to the objects of config/, and leaves out; nothing else may differ

HELMS_LABELS = ("helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/instance")
"""Labels by Helm's conventions, also in selectors: https://helm.sh/docs/chart_best_practices/labels."""
CHECKSUM = "checksum/config"
"""An annotation of the Pods: a change of the settings is a rollout."""
HOOK = "helm.sh/hook"
"""Objects with this annotation belong to `helm test`."""
HELM_CREATES = "Namespace"
"""`helm install --create-namespace` creates it."""
FILES = ("config.yaml", "access-providers.yaml")
"""YAML files in ConfigMaps: their content counts, not their comments and the order of their keys."""

Key = tuple[str, str, str]


def comparable(objects: Iterable[Object]) -> dict[Key, Object]:
    """Return the objects by kind, namespace and name, without what Helm's conventions add."""
    found: dict[Key, Object] = {}
    for obj in objects:
        if obj["kind"] == HELM_CREATES or HOOK in obj["metadata"].get("annotations", {}):
            continue
        data = obj.get("data", {})
        data |= {name: yaml.safe_load(data[name]) for name in FILES if name in data}
        assert key_of(obj) not in found
        found[key_of(obj)] = _without_helms(obj)
    return found


def key_of(one: Object) -> Key:
    return one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"]


def _without_helms(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_helms(one) for one in value]
    if isinstance(value, dict):
        kept = {key: one for key, one in value.items() if key not in (*HELMS_LABELS, CHECKSUM)}
        return {key: _without_helms(one) for key, one in kept.items()}
    return value


# -- rendering


@cache
def chart() -> helm.Chart:
    return helm.Chart.load(CHART)


def files(values: Object | None = None, release: str = NAME, namespace: str = NAMESPACE) -> dict[str, str]:
    """Return the text of each template by its path in the chart."""
    made = chart().render(merged(GIVEN, values or {}), name=release, namespace=namespace)
    return {path.partition("/templates/")[2]: text for path, text in made.items()}


def template(values: Object | None = None, release: str = NAME, namespace: str = NAMESPACE) -> list[Object]:
    """Return the objects that the chart renders, also those of `helm test`."""
    made = files(values, release, namespace)
    return [*_objects(text for path, text in made.items() if path.endswith(".yaml"))]


def _objects(texts: Iterable[str]) -> Iterator[Object]:
    for text in texts:
        yield from (one for one in yaml.safe_load_all(text) if one)


def merged(values: Object, more: Object) -> Object:
    """Return values as Helm merges two files of them."""
    both = {
        key: merged(value, more[key])
        if isinstance(value, dict) and isinstance(more[key], dict)
        else more[key]
        for key, value in values.items()
        if key in more
    }
    return values | more | both


def mode_values(mode: str) -> Object:
    """Return the values of a mode, with images as in `kustomized`."""
    path = CHART / "ci" / f"{mode}-values.yaml"
    values: Object = yaml.safe_load(path.read_text("utf-8")) if path.exists() else {}
    if "clusterProfiles" in values:
        (plugin,) = chart().values["clusterProfiles"]["plugins"]
        values["clusterProfiles"]["plugins"] = [merged(plugin, {"image": {"digest": DIGEST}})]
    return merged(values, {"image": {"repository": IMAGE, "tag": TAG}})


def images(overlay: str) -> list[Object]:
    """Return the images of an overlay's Pods as kustomize sets them: ours, and the plugins' with a digest."""
    objects = rendered(overlay)
    ours = re.split("[:@]", controller_of(objects)["image"])[0]
    plugins = [
        init_container["image"].partition("@")[0]
        for init_container in pod_of(objects).get("initContainers", ())
    ]
    return [
        {"name": ours, "newName": IMAGE, "newTag": TAG},
        *({"name": name, "digest": DIGEST} for name in plugins),
    ]


def kustomized(overlay: str, folder: Path) -> list[Object]:
    """Return the objects of an overlay of a user's own (written to `folder`), which only sets the images."""
    up = os.path.relpath(CONFIG / overlay, folder.resolve())
    body = {"resources": [up], "images": images(overlay)}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(body))
    return list(yaml.safe_load_all(kubectl("kustomize", str(folder))))
