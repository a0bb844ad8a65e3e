"""
The kubectl commands that fix a hub or a worker.

Pure. The only text from a worker in them is validated: names of objects and of its account, labels of a
selector.
"""

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from placement_ac.core.api.constants import KUBECONFIG_KEY, Kind
from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.core.inputs.rights import KueueRelease, VersionRange

KUEUE_MANIFESTS: Final = "https://github.com/kubernetes-sigs/kueue/releases/download/v{}/manifests.yaml"
KUEUE_TO_INSTALL: Final = "0.20.6"
"""The newest release that `core.inputs.rights` covers; of 0.20, the first without `WATCH_CACHES_FAIL`."""
WATCH_CACHES_FAIL: Final = VersionRange("0.20", until=KUEUE_TO_INSTALL)
"""Releases whose CRDs name a conversion webhook that they do not serve (kubernetes-sigs/kueue 18411)."""
WATCH_CACHES: Final = (
    "the API server repeatedly fails to initialise its watch caches for ClusterQueues, Cohorts, LocalQueues,"
    f" MultiKueueClusters and Workloads (kubernetes-sigs/kueue 18411): fixed in {KUEUE_TO_INSTALL}"
)
KUEUE_TO_UPGRADE_FROM: Final = KueueRelease(0, 19, 2)
"""A release that still serves v1beta1, and stores v1beta2: objects are migrated there before 0.20."""
READER: Final = "placement-ac-doctor"
"""Prefix of the ClusterRole that lets an account list the inspected kinds; a hash of the account follows."""
SENDER: Final = "placement-ac-multikueue"
"""Prefix of the ClusterRole with the rights that MultiKueue needs."""
_ACCOUNT: Final = re.compile(r"system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})")
_USER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._@/-]{0,252}")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with a context of the caller's kubeconfig: "" is the current one, the hub's."""

    context: str = ""

    def run(self, *words: str) -> str:
        """Return the command with these words, quoted where necessary."""
        return shlex.join(("kubectl", *(("--context", self.context) if self.context else ()), *words))

    def apply_text(self, text: str) -> str:
        """Return the command that applies a manifest."""
        return f"{self.run('apply', '-f', '-')} <<'EOF'\n{text}EOF"

    def apply(self, *objects: Object) -> str:
        """Return the command that applies these objects."""
        return self.apply_text(as_yaml(*objects))

    def patch(self, kind: str, name: str, spec: Mapping[str, Any], namespace: str = "") -> str:
        """Return the command that sets fields of an existing object and keeps the others."""
        merged = json.dumps({"spec": spec}, separators=(",", ":"))
        where = ("-n", namespace) if namespace else ()
        return self.run("patch", kind, name, *where, "--type=merge", "-p", merged)

    def install_kueue(self, release: KueueRelease | None = None) -> str:
        """Return the command that installs a release of Kueue: KUEUE_TO_INSTALL for None, or a broken one."""
        sound = release if release and not WATCH_CACHES_FAIL.has(release) else KUEUE_TO_INSTALL
        manifests = KUEUE_MANIFESTS.format(sound)
        return self.run("apply", "--server-side", "-f", manifests)

    def grant(self, role: str, user: str, rules: Iterable[Mapping[str, Any]]) -> str:
        """Return the command that grants `rules` to the user of the inspection; others keep their rights."""
        name = f"{role}-{hashlib.sha256(user.encode()).hexdigest()[:8]}"
        return self.apply(*cluster_role(name, rules, _subject(user)))


HUB: Final = Kubectl()


def put_secret(namespace: str, name: str, cluster: str) -> str:
    """Return the command for the hub that writes the kubeconfig file of a cluster into a Secret."""
    file = f"--from-file={KUBECONFIG_KEY}={cluster}.kubeconfig"
    created = HUB.run("create", "secret", "generic", "-n", namespace, name, file, "--dry-run=client")
    return f"{created} -o yaml | kubectl apply -f -"


def copy_crds(cluster: str, *names: str) -> str:
    """Return the command that copies CRDs from the hub to a worker."""
    return f"{HUB.run('get', 'crd', *names)} -o yaml | {Kubectl(cluster).run('create', '-f', '-')}"


def as_yaml(*objects: Object) -> str:
    """Return the manifest of these objects."""
    return to_yaml(*objects, flow=None)


def manifest(
    kind: Kind, name: str, spec: Mapping[str, Any] | None = None, *, namespace: str = "", version: str = ""
) -> Object:
    """Return an object, without `spec` if that is empty; `version` "": the newest one known."""
    return {
        "apiVersion": kind.at(version or kind.versions[0]).api_version,
        "kind": kind.kind,
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
    } | ({"spec": dict(spec)} if spec else {})


def cluster_role(
    name: str, rules: Iterable[Mapping[str, Any]], subject: Mapping[str, str]
) -> tuple[Object, Object]:
    """Return a ClusterRole and the ClusterRoleBinding of that name."""
    ref = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": name}
    return (
        manifest(CLUSTER_ROLE, name) | {"rules": [dict(rule) for rule in rules]},
        manifest(CLUSTER_ROLE_BINDING, name) | {"roleRef": ref, "subjects": [dict(subject)]},
    )


def for_comment(text: str) -> str:
    """Return a text for a comment in a command: on one line."""
    return text if text.isprintable() else json.dumps(text)


def _subject(user: str) -> dict[str, str]:
    if match := _ACCOUNT.fullmatch(user):
        return {"kind": "ServiceAccount", "namespace": match[1], "name": match[2]}
    name = user if _USER.fullmatch(user) else "USER"
    return {"apiGroup": CLUSTER_ROLE.group, "kind": "User", "name": name}
