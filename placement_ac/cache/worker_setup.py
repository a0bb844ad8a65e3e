"""
Collect the inputs for the set-up of workers, and whether each is ready.

No I/O, no clock.
"""

from collections.abc import Iterable, Mapping, MutableMapping
from datetime import datetime

from placement_ac.cache.credentials import CredentialLookup
from placement_ac.cache.tables import Tables
from placement_ac.core.api.constants import SETUP_NAME
from placement_ac.core.api.objects import Check
from placement_ac.core.credentials.source import ALWAYS
from placement_ac.core.inputs.state import Ages
from placement_ac.core.inputs.worker_setup import HubClusterQueue, SetupUsage, WorkerSetupInputs
from placement_ac.core.worker_setup.readiness import SetupState, setup_state
from placement_ac.core.worker_setup.template import named_template


class WorkerSetups:
    """Reads the tables. `errors`: cluster → why its ManifestWork could not be written.

    `states` keeps what was found for each cluster; whoever owns it forgets those whose keys a change touches.
    """

    def __init__(
        self,
        tables: Tables,
        credentials: CredentialLookup,
        errors: Mapping[str, str],
        states: MutableMapping[str, SetupState],
    ) -> None:
        self._tables = tables
        self._credentials = credentials
        self._errors = errors
        self._states = states

    def state(self, cluster: str) -> SetupState:
        """Return whether the worker of a cluster is ready."""
        if not self._tables.setup.enabled:
            return SetupState()
        if cluster not in self._states:
            self._states[cluster] = setup_state(self.inputs(cluster, ALWAYS, {}))
        return self._states[cluster]

    def inputs(self, cluster: str, now: datetime, ages: Ages) -> WorkerSetupInputs:
        """Return all that the ManifestWork of a cluster depends on."""
        tables = self._tables
        queues = tuple(self._queues(cluster))
        return WorkerSetupInputs(
            cluster=cluster,
            now=now,
            hub=tables.hub,
            policy=tables.setup,
            kueue_namespace=tables.kueue_namespace,
            managed_cluster=tables.managed_clusters.get(("", cluster)),
            queues=queues,
            flavors={name: flavor.spec for (_, name), flavor in tables.flavors.objects.items()},
            templates={queue.template: self._template(queue.template) for queue in queues if queue.template},
            work=tables.works.get((cluster, SETUP_NAME)),
            usage=self._usage(cluster),
            error=self._errors.get(cluster, ""),
            ages=ages,
        )

    def _template(self, name: str) -> str | None:
        found = self._tables.templates.get((self._tables.kueue_namespace, name))
        return found.text if found else None

    def _usage(self, cluster: str) -> SetupUsage:
        tables = self._tables
        clusters = tables.multikueue_clusters.by("cluster", cluster)
        exists = tables.works.get((cluster, SETUP_NAME)) is not None
        users = [
            p for p in tables.users_of(cluster) if self._credentials.calls_for(p, cluster, exists=exists)
        ]
        owners = {
            check.meta.uid: check.meta.name
            for check in self._checks({*users, *tables.placements_with(cluster)})
        }
        return SetupUsage(
            owners=owners | {uid: owner for obj in clusters for uid, owner in obj.owners.items()},
            selected=bool(users),
            listed=bool(clusters),
        )

    def _queues(self, cluster: str) -> Iterable[HubClusterQueue]:
        """Yield the ClusterQueues of the hub that send jobs to a cluster, by name."""
        tables = self._tables
        checks = self._checks(sorted(tables.placements_of(cluster)))
        names = {
            name for check in checks for _, name in tables.cluster_queues.index("check").ids(check.meta.name)
        }
        for name in sorted(names):
            queue = tables.cluster_queues.objects["", name]
            local_queues = sorted(tables.local_queues.index("cluster_queue").ids(name))
            template = self._template_of(check for check in checks if check.meta.name in queue.checks)
            yield HubClusterQueue(name, queue.spec, tuple(local_queues), template)

    def _checks(self, placements: Iterable[str]) -> list[Check]:
        """Return the checks of these Placements: ours, then Kueue's."""
        return [
            check
            for placement in placements
            for index in ("placement", "config")
            for check in self._tables.checks.by(index, placement)
        ]

    def _template_of(self, checks: Iterable[Check]) -> str:
        """Return the ConfigMap that one of these checks names, else that of the settings."""
        named = map(named_template, checks)
        return next(filter(None, named), self._tables.setup.template)
