"""
Apply YAML manifests with their status to a hub, and find the samples.

The samples are in the repository's `samples/` or, if installed from a wheel, inside the package. Objects are
applied by server-side apply; then a merge patch of the status subresource writes their `status`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.config import new_client_from_config, new_client_from_config_dict
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ResourceNotFoundError
from kubernetes.dynamic.resource import Resource

from placement_ac.core.api.errors import PlacementAcError
from placement_ac.kube.client import MERGE, Object

FIELD_MANAGER: Final = "placement-ac-samples"
"""The field manager, which differs from the controller's."""

_PACKAGE = Path(__file__).resolve().parents[1]
SAMPLE_FOLDERS: Final = (_PACKAGE.parent / "samples", _PACKAGE / "samples")


class ManifestError(PlacementAcError):
    """A manifest cannot be applied: invalid YAML, not a Kubernetes object, or a kind that is not served."""


def samples(folders: Iterable[Path] = SAMPLE_FOLDERS) -> Path:
    """Return the folder of the samples. Raises ManifestError if the installation lacks them."""
    for folder in folders:
        if (folder / "fleet").is_dir():
            return folder
    raise ManifestError("the samples are missing: neither " + " nor ".join(map(str, folders)))


def load(path: Path) -> list[Object]:
    """Return the objects of a YAML file, or of every `*.yaml` in a folder, by name. Raises ManifestError."""
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [item for file in files for item in _documents(file)]


def _documents(file: Path) -> Iterator[Object]:
    try:
        documents = list(yaml.safe_load_all(file.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ManifestError(f"{file}: {type(error).__name__}: {error}") from None
    for document in documents:
        if document is None:
            continue
        if not _is_object(document):
            raise ManifestError(f"{file}: a document is not a Kubernetes object (apiVersion, kind, metadata)")
        yield document


def _is_object(document: object) -> bool:
    return isinstance(document, dict) and (
        isinstance(document.get("apiVersion"), str)
        and isinstance(document.get("kind"), str)
        and isinstance(document.get("metadata"), dict)
    )


def connect(kubeconfig: Path | Mapping[str, Any]) -> DynamicClient:
    """Return Kubernetes' own client of the API server that a kubeconfig, a file or its content, names."""
    is_file = isinstance(kubeconfig, Path)
    api = new_client_from_config(str(kubeconfig)) if is_file else new_client_from_config_dict(kubeconfig)
    # By default, what is served is kept in the temporary folder, for whatever has this address later.
    return DynamicClient(api, cache_file=f"{os.devnull}/kept")


def resource_of(client: DynamicClient, api_version: str, kind: str) -> Resource:
    """Return a served resource. Raises ManifestError."""
    try:
        found: Resource = client.resources.get(api_version=api_version, kind=kind)
    except ResourceNotFoundError:
        raise ManifestError(f"the hub does not serve {kind} in {api_version}") from None
    return found


def apply(client: DynamicClient, objects: Iterable[Object]) -> list[Object]:
    """Apply `objects`, Namespaces first, and return the results in the given order.

    Objects without a name (`generateName`) are created each time. Raises ManifestError and DynamicApiError.
    """
    todo = list(objects)
    done: dict[int, Object] = {}
    for index in sorted(range(len(todo)), key=lambda index: todo[index]["kind"] != "Namespace"):
        done[index] = _put(client, todo[index])
    return [done[index] for index in range(len(todo))]


def _put(client: DynamicClient, item: Object) -> Object:
    served = resource_of(client, item["apiVersion"], item["kind"])
    body = {key: value for key, value in item.items() if key != "status"}
    if "name" not in item["metadata"]:
        return dict(served.create(body).to_dict())
    result = served.server_side_apply(body, field_manager=FIELD_MANAGER, force_conflicts=True)
    if "status" in item:
        metadata = {key: value for key, value in item["metadata"].items() if key in ("name", "namespace")}
        result = served.status.patch({"status": item["status"]}, content_type=MERGE, **metadata)
    return dict(result.to_dict())
