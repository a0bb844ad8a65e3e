"""
Look up the credentials of a cluster, and collect the inputs for those that are provisioned.

No I/O, no clock.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from placement_ac.cache.tables import Tables
from placement_ac.core.api.constants import ACCOUNT, ADDON_ACCOUNT, PERMISSION, SECRET, CredentialMethod, Kind
from placement_ac.core.api.objects import WritableObject
from placement_ac.core.credentials.cluster_profile import disallowed_server, supports
from placement_ac.core.credentials.discovery import find_credentials, find_external_credentials
from placement_ac.core.credentials.source import ALWAYS, DiscoveryInputs
from placement_ac.core.inputs.provisioning import CredentialUsage, ProvisioningInputs, ProvisioningObjects
from placement_ac.core.inputs.state import Ages
from placement_ac.core.kubeconfig.servers import AllowedServers
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class _Found(NamedTuple):
    """Credentials that were found, and from when until when that holds: time alone makes nothing usable."""

    source: CredentialSource | Unusable
    since: datetime
    until: datetime


class CredentialLookup:
    """Reads the tables.

    `errors`: cluster → why its credentials could not be written. `to_provision`: Placement → the clusters
    that get credentials, if not all that it selects do.
    """

    def __init__(
        self,
        tables: Tables,
        methods: Sequence[CredentialMethod],
        providers: AllowedServers | None,
        errors: Mapping[str, str],
        to_provision: Mapping[str, Collection[str]],
    ) -> None:
        self._tables = tables
        self._methods: Sequence[CredentialMethod] = methods
        self._providers = providers
        self._errors = errors
        self._to_provision = to_provision
        self._found: dict[str, _Found] = {}
        """Cluster → its credentials, if they depend on nothing but time and the tables as they are."""
        self._found_at = (0, 0)
        """The changes of the tables of which that is so."""

    # -- the credentials that a cluster has

    def sources(self, clusters: Iterable[str], now: datetime) -> dict[str, CredentialSource | Unusable]:
        """Return for each cluster where Kueue finds usable credentials, or why there are none."""
        changes = self._tables.secrets.changes, self._tables.profiles.changes
        if changes != self._found_at:
            self._found.clear()
            self._found_at = changes
        return {cluster: self._find(cluster, now) for cluster in clusters}

    def _find(self, cluster: str, now: datetime) -> CredentialSource | Unusable:
        found = self._found.get(cluster)
        if found and found.since <= now < found.until:
            return found.source
        inputs = self._discovery(cluster, now)
        source = find_credentials(inputs)
        if inputs.provisioned is None:
            until = source.expires if isinstance(source, CredentialSource) else None
            self._found[cluster] = _Found(source, now, until or _NEVER)
        return source

    def is_usable(self, cluster: str, now: datetime) -> bool:
        return isinstance(self.sources((cluster,), now)[cluster], CredentialSource)

    def expiries(self) -> dict[str, datetime]:
        """Return when the credentials expire of each cluster that we list or that a check of ours selects."""
        tables = self._tables
        clusters = set(tables.multikueue_clusters.index("cluster"))
        clusters.update(
            c for placement in tables.checks.index("placement") for c in tables.selected_by(placement)
        )
        sources = self.sources(clusters, ALWAYS).items()
        return {c: s.expires for c, s in sources if isinstance(s, CredentialSource) and s.expires}

    def _discovery(self, cluster: str, now: datetime) -> DiscoveryInputs:
        """Return what there is for a cluster, and the methods by which to look through it."""
        tables = self._tables
        # A Secret may be left from when credentials were provisioned.
        left = tables.secret(f"{tables.provisioning.account}-{cluster}")
        own = self._own_inputs(cluster, now) if tables.provisioning.provision or left else None
        return DiscoveryInputs(
            cluster=cluster,
            kueue_namespace=tables.kueue_namespace,
            methods=self._external_methods(own) if own else self._methods,
            profiles=tables.profiles.by("cluster", cluster),
            secret=tables.secret,
            profiles_supported=tables.hub.takes_profiles,
            providers=self._providers,
            now=now,
            provisioned=own,
        )

    def _external_methods(self, inputs: ProvisioningInputs) -> Sequence[CredentialMethod]:
        """Return the methods for what others made; a ClusterProfile to which OCM copies our token is ours."""
        own, policy = inputs.objects, inputs.policy
        theirs = inputs.usage.profile_used and own.account is not None and not own.account_is_synced
        is_ours = policy.form == "cluster-profile" or (own.account_is_ours and not theirs)
        if not policy.provision or not is_ours:
            return self._methods
        return tuple(method for method in self._methods if method != "access-provider")

    # -- the inputs for credentials that are provisioned

    def provisioning_inputs(self, cluster: str, now: datetime, ages: Ages) -> ProvisioningInputs:
        """Return all that the provisioned credentials of a cluster depend on."""
        inputs = self._discovery(cluster, now)
        own = inputs.provisioned or self._own_inputs(cluster, now)
        objects = replace(own.objects, orphans=tuple(self._orphans(own)))
        return replace(own, ages=ages, external=find_external_credentials(inputs), objects=objects)

    def _own_inputs(self, cluster: str, now: datetime) -> ProvisioningInputs:
        """Return the same, without looking for what others have made."""
        tables, name = self._tables, self._account_of(cluster)
        profile = tables.profiles.get((tables.kueue_namespace, cluster))
        supported = profile is not None and not profile.problem and supports(profile, self._providers)
        objects = ProvisioningObjects(
            managed_cluster=tables.managed_clusters.get(("", cluster)),
            account=tables.accounts.get((cluster, name)),
            permission=tables.permissions.get((cluster, name)),
            token=tables.tokens[name].get((cluster, name)),
            secret=tables.secret(f"{name}-{cluster}"),
            profile=profile if supported else None,
            profile_problem=disallowed_server(profile, self._providers) if profile and supported else "",
            profile_has_token=tables.secret(f"{cluster}-{name}") is not None,
        )
        return ProvisioningInputs(
            cluster=cluster,
            now=now,
            hub=tables.hub,
            policy=tables.provisioning,
            kueue_namespace=tables.kueue_namespace,
            account_name=name,
            objects=objects,
            usage=self._usage(cluster, f"{name}-{cluster}", objects),
            error=self._errors.get(cluster, ""),
        )

    def _usage(self, cluster: str, secret: str, objects: ProvisioningObjects) -> CredentialUsage:
        tables = self._tables
        clusters = tables.multikueue_clusters.by("cluster", cluster)
        exists = any((objects.account, objects.permission, objects.secret))
        users = [p for p in tables.users_of(cluster) if self.calls_for(p, cluster, exists=exists)]
        checks = [check for placement in users for check in tables.checks.by("placement", placement)]
        owners = {check.meta.uid: check.meta.name for check in checks}
        sources = tables.multikueue_clusters.index("source")
        secret_used, profile_used = f"Secret/{secret}" in sources, f"ClusterProfile/{cluster}" in sources
        by_profile = tables.provisioning.form == "cluster-profile" or (
            objects.account_is_ours and objects.account_is_synced
        )
        return CredentialUsage(
            owners=owners | {uid: owner for obj in clusters for uid, owner in obj.owners.items()},
            selected=bool(checks),
            listed=bool(clusters),
            secret_used=secret_used,
            profile_used=profile_used,
            in_use=secret_used or (by_profile and profile_used),
        )

    def calls_for(self, placement: str, cluster: str, *, exists: bool) -> bool:
        """Whether a Placement that selects the cluster calls for what we make for it.

        If it selects many clusters and has not been planned yet, it does for those that exist. A decision
        that may be forged only keeps those that exist.
        """
        if not exists and not self._tables.is_confirmed(placement, cluster):
            return False
        most = self._tables.hub.provisioned_max
        if sum(len(decision.clusters) for decision in self._tables.decisions_of(placement)) <= most:
            return True
        chosen = self._to_provision.get(placement)
        if chosen is None:
            return exists or len(self._tables.selected_by(placement)) <= most
        return cluster in chosen

    def _account_of(self, cluster: str) -> str:
        """Return the name of the cluster's account: the Go kueue-addon's, if that was handed over to us.

        It is so as long as anything of it is ours, whatever has been deleted.
        """
        account = self._tables.accounts.get((cluster, ADDON_ACCOUNT))
        permission = self._tables.permissions.get((cluster, ADDON_ACCOUNT))
        secret = self._tables.secret(f"{ADDON_ACCOUNT}-{cluster}")
        existing = [obj for obj in (account, permission, secret) if obj is not None]
        # As long as the account is there, it counts: it is handed over last.
        handed_over = account.handed_over if account else any(obj.handed_over for obj in existing)
        taken = handed_over or any(obj.ours for obj in existing)
        return ADDON_ACCOUNT if taken else self._tables.provisioning.account

    def _orphans(self, inputs: ProvisioningInputs) -> Iterator[tuple[Kind, WritableObject]]:
        """Yield what was provisioned under another account's name: the setting changed, or an adoption."""
        cluster, tables = inputs.cluster, self._tables
        sources = tables.multikueue_clusters.index("source")
        if f"ClusterProfile/{cluster}" in sources and not inputs.objects.profile_has_token:
            return
        for secret in tables.secrets.by("cluster", cluster):
            if secret.meta.name != inputs.secret_name and f"Secret/{secret.meta.name}" not in sources:
                yield SECRET, secret
        for kind, table in ((ACCOUNT, tables.accounts), (PERMISSION, tables.permissions)):
            for obj in table.by("cluster", cluster):
                is_used = f"Secret/{obj.meta.name}-{cluster}" in sources
                if not is_used and obj.meta.name != inputs.account_name:
                    yield kind, obj
