"""
What the world knows of credentials: the way into each cluster, and all that those depend on that are made.

No I/O, no clock.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from placement_ac.cache.tables import Tables, one
from placement_ac.core.api import objects
from placement_ac.core.api.constants import (
    ACCOUNT,
    ADDON_ACCOUNT,
    LABEL_SYNC,
    PERMISSION,
    SECRET,
    WORKLOAD,
    CredentialMethod,
    Kind,
)
from placement_ac.core.credentials.discovery import (
    ALWAYS,
    DiscoveryInputs,
    find_credentials,
    find_external_credentials,
    supports,
)
from placement_ac.core.inputs.state import Key, ProvisioningInputs, TimerAges
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable


class CredentialLookup(Tables):
    """Looks credentials up; `World` tells it what there is."""

    def clusters_to_provide(self, clusters: Iterable[str]) -> Iterable[str]:
        """Return these clusters, if credentials are made at all."""
        return filter(None, clusters) if self._terms.provision else ()

    def clusters_of_made(self, secret: str) -> Iterable[str]:
        """Yield the clusters for which that Secret may be ours, or be OCM's copy of a token."""
        known = self._secrets.things.get((self._kueue_namespace, secret))
        yield from self._clusters_of_ours(known) if known else ()
        for account in self._tokens:
            yield from one(secret.removeprefix(f"{account}-")) if secret.startswith(f"{account}-") else ()
            yield from one(secret.removesuffix(f"-{account}")) if secret.endswith(f"-{account}") else ()

    def _clusters_with_credentials(self) -> Iterable[str]:
        """Yield the clusters that may need credentials, or have some that are needed no more."""
        if not self._terms.provision:
            return
        for placement in self._checks.keys("placement"):
            yield from self._selected(placement)
        for table in (self._clusters, self._secrets, self._accounts, self._permissions):
            yield from table.keys("cluster")

    def provisioning_inputs(
        self, cluster: str, now: datetime, ages: TimerAges | None = None
    ) -> ProvisioningInputs:
        """Return all that the credentials depend on that are made for a cluster."""
        terms = self._terms
        name = self._account_of(cluster)
        secret_name = f"{name}-{cluster}"
        profile = self._profiles.things.get((self._kueue_namespace, cluster))
        supported = profile is not None and not profile.problem and supports(profile, self._providers)
        objects = self._clusters.by("cluster", cluster)
        checks = [c for p in self._users_of(cluster) for c in self._checks.by("placement", p)]
        owners = {check.meta.uid: check.meta.name for check in checks}
        return ProvisioningInputs(
            cluster=cluster,
            now=now,
            hub=self.hub,
            policy=terms,
            namespace=self._kueue_namespace,
            name=name,
            managed=self._managed.things.get(("", cluster)),
            account=self._accounts.things.get((cluster, name)),
            permission=self._permissions.things.get((cluster, name)),
            token=self._tokens[name].things.get((cluster, name)),
            secret=self._secrets.things.get((self._kueue_namespace, secret_name)),
            profile=profile if supported else None,
            synced=(self._kueue_namespace, f"{cluster}-{name}") in self._secrets.things,
            owners=owners | {uid: owner for obj in objects for uid, owner in obj.owners.items()},
            selected=bool(checks),
            in_use=self._stands_on(secret_name, cluster, self._accounts.things.get((cluster, name))),
            on_secret=f"Secret/{secret_name}" in self._clusters.keys("source"),
            on_profile=f"ClusterProfile/{cluster}" in self._clusters.keys("source"),
            known=bool(objects),
            trouble=self._trouble.get(cluster, ""),
            ages=ages or {},
        )

    def inputs_for_provisioning(self, cluster: str, now: datetime, ages: TimerAges) -> ProvisioningInputs:
        """Return the same, and whether others have put credentials there."""
        made = self.provisioning_inputs(cluster, now, ages)
        found = find_external_credentials(self._found(cluster, now, made), self._found_ways(made))
        return replace(made, found=found, orphans=tuple(self._orphans(made)))

    def _orphans(self, made: ProvisioningInputs) -> Iterator[tuple[Kind, objects.WritableObject]]:
        """Yield what was made before the account was called otherwise, by the setting or by adoption."""
        cluster, sources = made.cluster, self._clusters.keys("source")
        if f"ClusterProfile/{cluster}" in sources and not made.synced:
            return
        for secret in self._secrets.by("cluster", cluster):
            if secret.meta.name != made.secret_name and f"Secret/{secret.meta.name}" not in sources:
                yield SECRET, secret
        grants = ((ACCOUNT, self._accounts), (PERMISSION, self._permissions))
        for kind, grant in ((kind, g) for kind, table in grants for g in table.by("cluster", cluster)):
            if grant.meta.name != made.name and f"Secret/{grant.meta.name}-{cluster}" not in sources:
                yield kind, grant

    def expiries(self) -> dict[str, datetime]:
        """Return when the credentials end of each cluster that we list or that a check of ours selects.

        Known as long as nothing changes but Workloads: Prometheus asks often, of maybe 2,000 clusters.
        """
        changes = sum(table.changes for kind, table in self._tables.items() if kind is not WORKLOAD)
        if self._expiries is None or self._expiries[0] != (changes, self._trouble):
            self._expiries = (changes, dict(self._trouble)), self._looked_up_expiries()
        return self._expiries[1]

    def _looked_up_expiries(self) -> dict[str, datetime]:
        clusters = set(self._clusters.keys("cluster"))
        clusters.update(c for placement in self._checks.keys("placement") for c in self._selected(placement))
        ways = {cluster: self._credentials_of(cluster, ALWAYS) for cluster in clusters}
        return {
            c: way.expires for c, way in ways.items() if isinstance(way, CredentialSource) and way.expires
        }

    def set_provisioning_error(self, cluster: str, why: str) -> set[Key]:
        """Take in why the API server refused to write the credentials of a cluster; "": it did not."""
        if self._trouble.get(cluster, "") == why:
            return set()
        self._trouble[cluster] = why
        if not why:
            del self._trouble[cluster]
        return {Key("placement", name) for name in self.placements_of_cluster(cluster)}

    def _account_of(self, cluster: str) -> str:
        """Return the name of the cluster's account: the Go kueue-addon's, if that was handed over to us.

        It is so as long as anything of it is ours, whatever has been deleted.
        """
        account = self._accounts.things.get((cluster, ADDON_ACCOUNT))
        permission = self._permissions.things.get((cluster, ADDON_ACCOUNT))
        secret = self._secrets.things.get((self._kueue_namespace, f"{ADDON_ACCOUNT}-{cluster}"))
        there = [obj for obj in (account, permission, secret) if obj is not None]
        # As long as the account is there, it counts: it is handed over last.
        handed_over = account.handed_over if account else any(obj.handed_over for obj in there)
        taken = handed_over or any(obj.ours for obj in there)
        return ADDON_ACCOUNT if taken else self._terms.account

    def _stands_on(self, secret: str, cluster: str, account: objects.ProvisionedObject | None) -> bool:
        """Whether a MultiKueueCluster stands on what is made, in the form that is wanted or was."""
        sources = self._clusters.keys("source")
        mine = account is not None and (account.ours or account.handed_over)
        synced = mine and account is not None and account.meta.labels.get(LABEL_SYNC) == "true"
        by_profile = self._terms.form == "cluster-profile" or synced
        return f"Secret/{secret}" in sources or (by_profile and f"ClusterProfile/{cluster}" in sources)

    def _found_ways(self, made: ProvisioningInputs) -> tuple[CredentialMethod, ...]:
        """Return the ways that others make. A ClusterProfile is ours, once OCM may copy our token there."""
        account = made.account
        mine = account is not None and (account.ours or account.handed_over)
        theirs = made.on_profile and account is not None and account.meta.labels.get(LABEL_SYNC) != "true"
        is_ours = self._terms.form == "cluster-profile" or (mine and not theirs)
        if not self._terms.provision or not is_ours:
            return self._ways
        return tuple(way for way in self._ways if way != "access-provider")

    def credential_method(self, cluster: str, now: datetime) -> CredentialMethod | None:
        """Return by which way the credentials of a cluster are found; None: by none that others made."""
        found, ways = self._searched(cluster, now)
        return next((way for way in ways if find_external_credentials(found, (way,))), None)

    def _credentials_of(self, cluster: str, now: datetime) -> CredentialSource | Unusable:
        """Return the way in, or why there is none; what is found counts until it ends or anything changes."""
        return self._credentials_for((cluster,), now)[cluster]

    def _credentials_for(
        self, clusters: Iterable[str], now: datetime
    ) -> dict[str, CredentialSource | Unusable]:
        """Return the same for each of these clusters."""
        changes = self._profiles.changes, self._secrets.changes
        if changes != self._ways_at:
            self._ways_known.clear()
            self._ways_at = changes
        ways: dict[str, CredentialSource | Unusable] = {}
        for cluster in clusters:
            known: CredentialSource | None = self._ways_known.get(cluster)
            if known is None or (known.expires is not None and known.expires <= now):
                ways[cluster] = self._look_up(cluster, now)
            else:
                ways[cluster] = known
        return ways

    def _look_up(self, cluster: str, now: datetime) -> CredentialSource | Unusable:
        found = find_credentials(*self._searched(cluster, now))
        if isinstance(found, CredentialSource) and self._is_plain(cluster):
            self._ways_known[cluster] = found
        return found

    def _is_plain(self, cluster: str) -> bool:
        """Whether nothing is or was made for a cluster: all there is lies in Secrets and ClusterProfiles."""
        before = self._kueue_namespace, f"{self._terms.account}-{cluster}"
        return not self._terms.provision and before not in self._secrets.things

    def _searched(self, cluster: str, now: datetime) -> tuple[DiscoveryInputs, tuple[CredentialMethod, ...]]:
        """Return what there is of a cluster, and the ways in which to look through it."""
        if self._is_plain(cluster):
            return self._found(cluster, now), self._ways
        made = self.provisioning_inputs(cluster, now)
        return self._found(cluster, now, made), self._found_ways(made)

    def _found(self, cluster: str, now: datetime, made: ProvisioningInputs | None = None) -> DiscoveryInputs:
        return DiscoveryInputs(
            cluster=cluster,
            kueue_namespace=self._kueue_namespace,
            profiles=self._profiles.by("cluster", cluster),
            secret=lambda name: self._secrets.things.get((self._kueue_namespace, name)),
            profiles_supported=self.hub.takes_profiles,
            providers=self._providers,
            now=now,
            made=made,
        )

    def _usable(self, cluster: str, now: datetime) -> bool:
        return isinstance(self._credentials_of(cluster, now), CredentialSource)
