"""CapacityProviders on a hub: the kind, which no release of Kueue has, and what one sees of them."""

from collections.abc import Mapping

from placement_ac.core.api.constants import OCM_CLUSTER, OUR_CONTROLLER
from placement_lab.hub import kinds
from tests.support.bare_workers import FLAVOR
from tests.support.driver import KUEUE, Driver, Object
from tests.support.hub_client import CRDS
from tests.support.jobs import soon

PROVIDERS = f"{KUEUE}/v1alpha1/capacityproviders"


def serve(admin: Driver) -> None:
    """Let the hub serve CapacityProviders."""
    [crd] = [one for one in kinds.bundled() if one["spec"]["names"]["kind"] == "CapacityProvider"]
    if admin.get(PROVIDERS) is None:
        admin.ask("POST", CRDS, crd)
        soon(lambda: admin.get(PROVIDERS) is not None)


def create(admin: Driver, name: str = "hub", controller: str = OUR_CONTROLLER, placement: str = "p") -> None:
    """Create a CapacityProvider that names a Placement."""
    spec = {
        "controllerName": controller,
        "orchestratedFlavors": [{"name": FLAVOR}],
        "parameters": {"apiGroup": OCM_CLUSTER, "kind": "Placement", "name": placement},
    }
    version = {"apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "CapacityProvider"}
    admin.ask("POST", PROVIDERS, version | {"metadata": {"name": name}, "spec": spec})


def status(admin: Driver, name: str = "hub") -> Object:
    return dict(admin.ask("GET", f"{PROVIDERS}/{name}").get("status") or {})


def amounts(admin: Driver, name: str = "hub") -> Mapping[str, str]:
    """Return resource → amount of the one flavor that is published; {}: nothing is."""
    flavors = (status(admin, name).get("capacity") or {}).get("flavors") or [{}]
    return dict(flavors[0].get("resources") or {})


def reported(admin: Driver, name: str = "hub") -> tuple[str, str]:
    """Return reason and message of the condition; ("", ""): there is none."""
    [condition] = status(admin, name).get("conditions") or [{}]
    return condition.get("reason", ""), condition.get("message", "")
