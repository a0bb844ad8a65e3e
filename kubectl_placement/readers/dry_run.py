"""
Ask the API server whether it would take manifests: a server-side apply of each, as a dry run.

Nothing is stored, but the caller needs the rights to write, and an audit log shows a PATCH. Fields that
another manager owns are no refusal (`force`): whether the object is accepted is asked, not whose it is.
"""

from collections.abc import Iterable
from typing import Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.dump_files import kind_of
from placement_ac.core.api.constants import JOB, Kind
from placement_ac.core.api.errors import ApiError
from placement_ac.kube.client import APPLY, Client

_QUERY: Final = {
    "fieldManager": "kubectl",
    "force": "true",
    "dryRun": "All",
    "fieldValidation": "Strict",
}
_UNTYPED: Final = "failed to create typed patch object"
"""In the 500 that an API server answers to an applied field that its schema lacks, also with Strict."""
_BY_KIND: Final = {("batch/v1", "Job"): JOB}


async def refusals(client: Client, manifests: Iterable[Object], namespace: str) -> tuple[str, ...]:
    """Return what the server says of each manifest that it refuses, with the object's name in front.

    Only of kinds that a dump contains, and of Jobs; not of objects whose name is generated. `namespace`: of
    manifests without one. Raises ApiError if the server does not answer.
    """
    found = [await _refusal(client, manifest, namespace) for manifest in manifests]
    return tuple(filter(None, found))


async def _refusal(client: Client, manifest: Object, namespace: str) -> str:
    kind, metadata = _kind_of(manifest), manifest["metadata"]
    if kind is None or "name" not in metadata:
        return ""
    space = (metadata.get("namespace") or namespace) if kind.namespaced else None
    version = str(manifest["apiVersion"]).rpartition("/")[2]
    body = manifest | {"metadata": metadata | ({"namespace": space} if space else {})}
    path = kind.at(version).path(space, metadata["name"])
    try:
        await client.request("PATCH", path, body, query=_QUERY, content_type=APPLY)
    except ApiError as error:
        if not 400 <= error.status < 500 and _UNTYPED not in error.message:
            raise
        return f"{kind.kind} {'/'.join(filter(None, (space, metadata['name'])))}: {error.message}"
    return ""


def _kind_of(manifest: Object) -> Kind | None:
    return kind_of(manifest)[0] or _BY_KIND.get((manifest["apiVersion"], manifest["kind"]))
