"""The credentials of 60 selected clusters, of which Kueue takes 20. OCM is played by hand."""

import re

from placement_ac.core.api.constants import ACCOUNT, PERMISSION
from tests.support.builders import SERVER, authority, encoded, jwt
from tests.support.credentials import ACCOUNTS, MANAGED, NAME, PERMISSIONS
from tests.support.driver import CORE, NS, Controllers, Driver, Object
from tests.support.jobs import soon

MANY = [f"c{at:02}" for at in range(60)]
ALL_ACCOUNTS = f"{ACCOUNTS}/{ACCOUNT.plural}"
ALL_PERMISSIONS = f"{PERMISSIONS}/{PERMISSION.plural}"
DONE = {ALL_ACCOUNTS: "TokenReported", ALL_PERMISSIONS: "AppliedRBACManifestWork"}


class Ocm:
    """Decides, reports a token for each account and applies each permission, whenever `answer` is called."""

    def __init__(self, admin: Driver) -> None:
        self.admin = admin
        for name in MANY:
            admin.namespace(name)
            config = {"url": SERVER, "caBundle": encoded(authority())}
            body = {"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster"}
            spec = {"managedClusterClientConfigs": [config]}
            admin.ask("POST", MANAGED, body | {"metadata": {"name": name}, "spec": spec})

    def decide(self, **scores: int) -> None:
        """Select all, with scores that fall from 100 but for those given."""
        entries = {name: 100 - at for at, name in enumerate(MANY)} | scores
        self.admin.decide("p", *sorted(entries.items(), key=lambda one: -one[1]))
        self.admin.placement_says("p", len(MANY))

    def answer(self) -> None:
        for path, condition in DONE.items():
            waiting = [obj for obj in self.objects(path) if "status" not in obj]
            for cluster in (one["metadata"]["namespace"] for one in waiting):
                if path == ALL_ACCOUNTS:
                    self._report_token(cluster)
                active = {"type": condition, "status": "True", "reason": condition, "message": ""}
                status = {"conditions": [active | {"lastTransitionTime": "2026-08-01T12:00:00Z"}]}
                group, plural = path.rsplit("/", 1)
                own = f"{group}/namespaces/{cluster}/{plural}/{NAME}/status"
                self.admin.try_("PATCH", own, {"status": status}, "merge")

    def _report_token(self, cluster: str) -> None:
        data = {"token": encoded(jwt(cluster, hours=1e5)), "ca.crt": encoded(authority())}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": NAME}, "data": data}
        self.admin.try_("POST", f"{CORE}/namespaces/{cluster}/secrets", secret)

    def objects(self, path: str) -> list[Object]:
        return list(self.admin.ask("GET", path)["items"])

    def made(self) -> tuple[list[str], list[str], list[str]]:
        """The clusters with an account, with a permission, and with a kubeconfig."""
        self.answer()
        accounts, permissions = (
            sorted(obj["metadata"]["namespace"] for obj in self.objects(path))
            for path in (ALL_ACCOUNTS, ALL_PERMISSIONS)
        )
        names = (obj["metadata"]["name"] for obj in self.objects(f"{CORE}/namespaces/{NS}/secrets"))
        return accounts, permissions, sorted(name.removeprefix(f"{NAME}-") for name in names)

    def listed(self) -> list[str]:
        self.answer()
        return sorted(name.removeprefix("p-") for name in self.admin.listed("p") or ())


def test_of_60_selected_clusters_22_get_credentials_and_later_a_better_one(
    admin: Driver, controllers: Controllers
) -> None:
    ocm = Ocm(admin)
    admin.check("p")
    admin.placement("p")
    ocm.decide()
    controllers.start(credentials_provision="managed-serviceaccount", frameworks="batch/job")
    soon(ocm.listed, MANY[:20])
    assert ocm.made() == (MANY[:22], MANY[:22], MANY[:22])
    soon(lambda: "; 40 beyond the 20 clusters that Kueue takes: c20, c21" in admin.active("p")["message"])
    assert "left out" not in admin.active("p")["message"]

    written = len(admin.hub.journal)
    ocm.decide(c40=200)
    soon(ocm.listed, [*MANY[:19], "c40"])
    now = [*MANY[:21], "c40"]
    soon(ocm.made, (now, now, now))
    deleted = {path for method, path in admin.writes(written) if method == "DELETE"}
    assert {found for path in deleted for found in re.findall(r"c\d\d", path)} == {"c19", "c21"}
    assert [path for path in deleted if "c19" in path] == [admin.kueue("multikueueclusters", "p-c19")]
