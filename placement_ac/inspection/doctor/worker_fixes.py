"""
The commands that fix a worker; they use a context of the worker's name in the caller's kubeconfig.

Pure. The only text from a worker in them is validated names of objects and of its account.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Final

import yaml

from placement_ac.core.api.constants import KUBECONFIG_KEY, Kind
from placement_ac.core.inputs.rights import KueueRelease
from placement_ac.inspection.doctor.crds import KUEUE_MANIFESTS, KUEUE_TO_INSTALL
from placement_ac.inspection.doctor.setup import spec_of
from placement_ac.inspection.hub.dump import Object

RBAC: Final = "rbac.authorization.k8s.io"
READER: Final = "placement-ac-doctor"
"""Prefix of the ClusterRole that lets an account list the inspected kinds; a hash of the account follows."""
SENDER: Final = "placement-ac-multikueue"
"""Prefix of the ClusterRole with the rights that MultiKueue needs."""
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})")
_USER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._@/-]{0,252}")


def kubectl(cluster: str, *words: str) -> str:
    """Return a kubectl command for a worker."""
    return shlex.join(("kubectl", "--context", cluster, *words))


def apply(cluster: str, *objects: Object) -> str:
    """Return the command that applies these objects to a worker."""
    text = yaml.safe_dump_all(objects, sort_keys=False, width=1000)
    return f"{kubectl(cluster, 'apply', '-f', '-')} <<'EOF'\n{text}EOF"


def patch(cluster: str, kind: str, name: str, spec: Mapping[str, Any]) -> str:
    """Return the command that sets fields of an existing object and keeps the others."""
    merged = json.dumps({"spec": spec}, separators=(",", ":"))
    return kubectl(cluster, "patch", kind, name, "--type=merge", "-p", merged)


def install_kueue(cluster: str, release: KueueRelease | None) -> str:
    wanted = str(release) if release else KUEUE_TO_INSTALL
    return kubectl(cluster, "apply", "--server-side", "-f", KUEUE_MANIFESTS.format(wanted))


def put_secret(namespace: str, name: str, cluster: str) -> str:
    """Return the command for the hub that writes a kubeconfig file into a Secret."""
    words = ("create", "secret", "generic", "-n", namespace, name)
    made = shlex.join(
        ("kubectl", *words, f"--from-file={KUBECONFIG_KEY}={cluster}.kubeconfig", "--dry-run=client")
    )
    return f"{made} -o yaml | kubectl apply -f -"


def copy_crds(cluster: str, names: Iterable[str]) -> str:
    """Return the command that copies the hub's CRDs to the worker."""
    return (
        f"{shlex.join(('kubectl', 'get', 'crd', *names))} -o yaml | {kubectl(cluster, 'create', '-f', '-')}"
    )


def grant(cluster: str, role: str, user: str, rules: Iterable[Mapping[str, Any]]) -> str:
    """Return the command that grants `rules` to the user of the inspection; others keep their rights."""
    name = f"{role}-{hashlib.sha256(user.encode()).hexdigest()[:8]}"
    metadata = {"name": name}
    return apply(
        cluster,
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [dict(rule) for rule in rules],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [_subject(user)],
        },
    )


def manifest(kind: Kind, version: str, name: str, spec: Mapping[str, Any], namespace: str = "") -> Object:
    """Return an object; without `spec` if that is empty."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    head = {"apiVersion": f"{kind.group}/{version}" if kind.group else version, "kind": kind.kind}
    return {**head, "metadata": metadata} | ({"spec": dict(spec)} if spec else {})


def without_checks(cluster_queue: Object) -> dict[str, Any]:
    """Return the spec of the hub's ClusterQueue for a worker."""
    hub_only = ("admissionChecks", "admissionChecksStrategy")
    return {field: value for field, value in spec_of(cluster_queue).items() if field not in hub_only}


def _subject(user: str) -> dict[str, str]:
    if found := _ACCOUNT.fullmatch(user):
        return {"kind": "ServiceAccount", "namespace": found[1], "name": found[2]}
    name = user if _USER.fullmatch(user) else "USER"
    return {"apiGroup": RBAC, "kind": "User", "name": name}
