"""
Apply YAML manifests with their status to a hub, and find the samples.

The samples are in the repository's `samples/` or, if installed from a wheel, inside the package. Objects are
applied by server-side apply; then a merge patch of the status subresource writes their `status`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import NotFound, PlacementAcError
from placement_ac.kube.client import Client, Object

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


async def apply(client: Client, objects: Iterable[Object]) -> list[Object]:
    """Apply `objects`, Namespaces first, and return the results in the given order.

    Objects without a name (`generateName`) are created each time. Raises ManifestError and ApiError.
    """
    todo = list(objects)
    kinds = _ServedKinds(client)
    done: dict[int, Object] = {}
    for index in sorted(range(len(todo)), key=lambda index: todo[index]["kind"] != "Namespace"):
        done[index] = await _put(client, await kinds.of(todo[index]), todo[index])
    return [done[index] for index in range(len(todo))]


async def _put(client: Client, resource: Resource, item: Object) -> Object:
    body = {key: value for key, value in item.items() if key != "status"}
    if "name" not in item["metadata"]:
        return await client.create(resource, body)
    result = await client.apply(resource, body, force=True)
    if "status" not in item:
        return result
    metadata = item["metadata"]
    return await client.merge(
        resource,
        metadata["name"],
        {"status": item["status"]},
        namespace=metadata.get("namespace"),
        subresource="status",
    )


@dataclass(slots=True)
class _ServedKinds:
    """The resources that the hub serves; each group version is discovered once."""

    client: Client
    resources: dict[str, dict[str, Resource]] = field(default_factory=dict)

    async def of(self, item: Object) -> Resource:
        """Return the resource of an object. Raises ManifestError."""
        version = item["apiVersion"]
        if version not in self.resources:
            self.resources[version] = await self._ask(version)
        if item["kind"] not in self.resources[version]:
            raise ManifestError(f"the hub does not serve {item['kind']} in {version}")
        return self.resources[version][item["kind"]]

    async def _ask(self, api_version: str) -> dict[str, Resource]:
        group, _, version = api_version.rpartition("/")
        try:
            answer = await self.client.request("GET", f"/apis/{api_version}" if group else f"/api/{version}")
        except NotFound:
            return {}
        return {
            entry["kind"]: Kind(group, entry["kind"], entry["name"], entry["namespaced"], (version,)).at(
                version
            )
            for entry in answer.get("resources") or ()
            if "/" not in entry["name"]
        }
