"""Identities that workers have shown, as the controller remembers them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from placement_ac.core.inputs.identity import WorkerIdentity
from placement_ac.core.inputs.state import Snapshot
from tests.support.builders import NOW


def shows(seen: Snapshot, **shown: Any) -> Snapshot:
    """The same when workers have shown these objects: fields of WorkerIdentity, and `age` in seconds.

    A plain text is the uid of their Namespace kube-system.
    """
    identities = {}
    for cluster, fields in shown.items():
        source = seen.credentials.usable(cluster)
        assert source is not None
        given = {"namespace": fields} if isinstance(fields, str) else dict(fields)
        asked_at = NOW - timedelta(seconds=given.pop("age", 1.0 if "copies" in given else 100.0))
        identities[source] = WorkerIdentity(given.pop("version", source.version), asked_at, **given)
    return replace(seen, fleet=replace(seen.fleet, identities=identities))
