"""
A rule for objects of Kueue that may be stored in a version which Kueue 0.20 no longer serves.

Pure. A CRD names in `status.storedVersions` each version in which an object was ever stored, until somebody
takes the version out; Kueue's script writes all objects again, and does not do that.
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from typing import Final

from kubectl_placement.doctor.commands import HUB, KUEUE_TO_UPGRADE_FROM, Kubectl
from kubectl_placement.doctor.finding import Finding, ok, unknown, warn
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.kinds import CRD, KUEUE_CRDS
from placement_ac.core.api.constants import KUEUE_VERSIONS
from placement_ac.core.api.fields import get_list, get_strs, name_of
from placement_ac.core.api.text import joined

NEW, OLD = KUEUE_VERSIONS[:2]
_SCRIPT: Final = "migrate-to-v1beta2.sh"
_URL: Final = f"https://raw.githubusercontent.com/kubernetes-sigs/kueue/main/hack/{_SCRIPT}"
_PATCH: Final = (
    "--subresource=status",
    "--type=merge",
    "-p",
    json.dumps({"status": {"storedVersions": [NEW]}}),
)
LOOKS_AT: Final = f"no CRD of Kueue has {OLD} in `status.storedVersions`: Kueue 0.20 does not serve it"
FIX: Final = f"bash {_SCRIPT} && kubectl patch crd NAME {shlex.join(_PATCH)}"


def stored_in_old(definitions: Iterable[Object]) -> list[str]:
    """Return the names of Kueue's CRDs of which objects may be stored in the old version."""
    return [name for name, crd in _of_kueue(definitions).items() if OLD in _stored(crd)]


def stored_version_findings(
    definitions: Iterable[Object], kubectl: Kubectl, upgrade_first: str
) -> Iterator[Finding]:
    """Yield what CRDs say of a cluster; `upgrade_first`: the fix where Kueue still writes the old version."""
    crds = _of_kueue(definitions)
    old = stored_in_old(crds.values())
    if writes_old := [name for name in old if _has(crds[name], OLD, "storage")]:
        yield warn(
            f"upgrade Kueue to {KUEUE_TO_UPGRADE_FROM} and migrate its objects before it is upgraded to 0.20,"
            f" which does not serve {OLD}: it stores {joined(writes_old)} in {OLD}",
            upgrade_first,
        )
    elif old:
        is_served = all(_has(crds[name], OLD, "served") for name in old)
        upgrade = f"to 0.20, which does not serve {OLD}" if is_served else f"to a release without {OLD}"
        yield warn(
            f"migrate Kueue's objects to {NEW} before Kueue is upgraded {upgrade}:"
            f" objects of {joined(old)} may be stored in {OLD}",
            _migrate(kubectl, old, is_served=is_served),
        )
    elif not crds or not all(map(_stored, crds.values())):
        show = kubectl.run("get", "crd", *KUEUE_CRDS)
        yield unknown("Kueue's CRDs do not say in which versions objects are stored", show)
    yield ok(f"Kueue's objects are stored in {NEW}")


@hub_rule("stored-versions", LOOKS_AT, FIX, CRD)
def stored_versions(setup: HubSetup) -> Iterator[Finding]:
    upgrade = setup.kueue.upgrade(KUEUE_TO_UPGRADE_FROM)
    yield from stored_version_findings(setup.dump.of(CRD), HUB, upgrade)


def _of_kueue(definitions: Iterable[Object]) -> dict[str, Object]:
    return {name_of(crd): crd for crd in definitions if name_of(crd) in KUEUE_CRDS}


def _stored(definition: Object) -> list[str]:
    return get_strs(definition, "status", "storedVersions")


def _has(definition: Object, version: str, field: str) -> bool:
    """Whether a version of a CRD has that field set."""
    versions = get_list(definition, "spec", "versions")
    return any(entry.get("name") == version and entry.get(field) is True for entry in versions)


def _migrate(kubectl: Kubectl, names: Iterable[str], *, is_served: bool) -> str:
    """Return the commands that write all objects again, and take the old version out of the CRDs.

    The script knows only the current context.
    """
    use = f"kubectl config use-context {shlex.quote(kubectl.context)}  # and back afterwards\n"
    patch = kubectl.run("patch", "crd", *names, *_PATCH)
    script = f"bash {_SCRIPT}" + ("" if is_served else f" --kubectl-get-api-version={NEW}")
    return f"{use if kubectl.context else ''}curl -fsSLO {_URL} &&\n{script} &&\n{patch}"


RULES: Final = (stored_versions,)
