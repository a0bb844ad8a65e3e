"""
Remove what `placement-ac dump` must not show: the content of Secrets, and kubectl's copy of it.

Pure.
"""

import base64
from typing import Any, Final

from placement_ac.core.api.constants import KUBECONFIG_KEY, SECRET, Kind
from placement_ac.core.api.decode import secret
from placement_ac.inspection.hub.dump import LAST_APPLIED, Object

REDACTED: Final = "redacted"
_REPLACED: Final = base64.b64encode(REDACTED.encode()).decode()
_KUBECONFIG: Final = base64.b64encode(
    b"apiVersion: v1\nkind: Config\ncurrent-context: redacted\n"
    b"clusters: [{name: redacted, cluster: {server: 'https://redacted.invalid'}}]\n"
    b"users: [{name: redacted, user: {token: redacted}}]\n"
    b"contexts: [{name: redacted, context: {cluster: redacted, user: redacted}}]\n"
).decode()
"""Stands for a kubeconfig that Kueue can use; any other stays one that it cannot use."""


def redacted(kind: Kind, obj: Object) -> Object:
    """Return the object as it is; a Secret without its values."""
    return _without_values(obj) if kind == SECRET else obj


def _without_values(obj: Object) -> Object:
    data: dict[str, Any] = dict.fromkeys(obj.get("data") or {}, _REPLACED)
    if KUBECONFIG_KEY in data and not secret(obj).problem:
        data[KUBECONFIG_KEY] = _KUBECONFIG
    metadata = dict(obj["metadata"])
    annotations = {
        key: text for key, text in (metadata.get("annotations") or {}).items() if key != LAST_APPLIED
    }
    if "annotations" in metadata:
        metadata["annotations"] = annotations
    head = {key: obj[key] for key in ("apiVersion", "kind", "type", "immutable") if key in obj}
    return head | {"metadata": metadata, "data": data}
