"""The manifests under `config/`, as kustomize renders them, and readers of their objects."""

import functools
import os
import pickle
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from placement_lab.hub import rbac_rules

Object = dict[str, Any]

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "config"
OVERLAYS = ("default", *sorted(f"overlays/{path.name}" for path in (CONFIG / "overlays").iterdir()))
COMPONENTS = tuple(sorted(path.name for path in (CONFIG / "components").iterdir()))
NAMESPACE = "placement-ac-system"
NAME = "placement-ac"


def pyproject(package: str = "placement_ac") -> Object:
    """Return the content of the pyproject.toml of one of the three packages."""
    folder = ROOT if package == "placement_ac" else ROOT / package
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def contains(live: Any, wanted: Any) -> bool:
    """Whether an object on the hub has all that a manifest has."""
    if isinstance(wanted, dict):
        return all(key in live and contains(live[key], value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return len(live) == len(wanted) and all(map(contains, live, wanted))
    return bool(live == wanted)


def kubectl(*words: str, **environment: str) -> str:
    """Return kubectl's output; without kubectl the test fails in CI and is skipped elsewhere."""
    if shutil.which("kubectl") is None:
        reason = "kubectl is not on PATH: it renders the manifests"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    done = subprocess.run(
        ["kubectl", *words],
        env={"PATH": os.environ["PATH"]} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def rendered(overlay: str) -> list[Object]:
    """Return the objects of `config/<overlay>`, as copies that the caller may change."""
    objects: list[Object] = pickle.loads(_rendered(str(CONFIG / overlay)))
    return objects


@functools.cache
def _rendered(folder: str) -> bytes:
    return pickle.dumps(list(yaml.safe_load_all(kubectl("kustomize", folder))))


def of(objects: Iterable[Object], kind: str, name: str = NAME) -> Object:
    """Return the only object of that kind and name."""
    (found,) = (obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
    return found


def pod_of(objects: Iterable[Object]) -> Object:
    """Return the spec of the Deployment's Pods."""
    spec: Object = of(objects, "Deployment")["spec"]["template"]["spec"]
    return spec


def controller_of(objects: Iterable[Object]) -> Object:
    (container,) = pod_of(objects)["containers"]
    return dict(container)


def environment_of(objects: Iterable[Object]) -> dict[str, str]:
    return {one["name"]: one["value"] for one in controller_of(objects).get("env") or ()}


def write_mounts(objects: Iterable[Object], pod: Object, folder: Path) -> list[str]:
    """Write the ConfigMaps that a Pod's first container mounts to `folder`; return where it mounts them."""
    objects, paths = list(objects), []
    sources = {volume["name"]: volume.get("configMap") for volume in pod["volumes"]}
    for mount in pod["containers"][0]["volumeMounts"]:
        if source := sources[mount["name"]]:
            target = folder / mount["mountPath"].lstrip("/")
            target.mkdir(parents=True)
            for key, text in of(objects, "ConfigMap", source["name"])["data"].items():
                (target / key).write_text(text)
            paths.append(mount["mountPath"])
    return paths


def flags_of(objects: Iterable[Object], folder: Path) -> dict[str, str]:
    """Return the flags of the container; the files that it mounts are written to `folder`."""
    objects = list(objects)
    write_mounts(objects, pod_of(objects), folder)
    command, *flags = controller_of(objects)["args"]
    assert command == "run"
    return {key.lstrip("-").replace("-", "_"): value for key, _, value in (f.partition("=") for f in flags)}


def grants(objects: Iterable[Object]) -> list[tuple[str, str, rbac_rules.RbacRule]]:
    """Return each single permission: its role, its namespace ("": cluster-wide), and the permission."""
    objects = list(objects)
    found = []
    for binding in objects:
        if binding["kind"] in ("RoleBinding", "ClusterRoleBinding"):
            where = binding["metadata"].get("namespace", "")
            role = next(obj for obj in objects if _is_role_of(binding, obj))
            rules = map(rbac_rules.parse_rule, role["rules"])
            found += [(role["metadata"]["name"], where, part) for rule in rules for part in rule.parts()]
    return found


def _is_role_of(binding: Object, role: Object) -> bool:
    reference = binding["roleRef"]
    same = (role["kind"], role["metadata"]["name"]) == (reference["kind"], reference["name"])
    return same and role["metadata"].get("namespace", "") in ("", binding["metadata"].get("namespace"))
