"""Finds out what the hub serves, and waits while CRDs are missing that the controller cannot do without."""

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import structlog

from placement_ac.cache.tables import kinds_for
from placement_ac.config.policy import hub_facts, known_kueue, needs_kueue, worker_setup_policy
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import (
    ACCOUNT,
    CAPACITY_PROVIDER,
    MANIFEST_WORK,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PERMISSION,
    Kind,
    Resource,
)
from placement_ac.core.api.errors import ApiError, Refused
from placement_ac.core.api.fields import get_str
from placement_ac.core.api.kueue_gates import KUEUE_CONFIG_MAP
from placement_ac.core.inputs.kinds import CAPACITY_KINDS, OPTIONAL_KINDS, REQUIRED_KINDS
from placement_ac.core.inputs.provisioning import ProvisioningPolicy
from placement_ac.core.inputs.rights import UNKNOWN_KUEUE, RunningKueue
from placement_ac.core.inputs.state import HubFacts
from placement_ac.kube.client import Client
from placement_ac.observability.health import Health
from placement_ac.observability.logs import LogDeduplicator
from placement_ac.workers.queries import running_kueue

log = structlog.get_logger(__name__)

DISCOVERY_SECONDS: Final = 2.0
"""How often discovery is repeated while required kinds are missing."""
MISSING_GRACE_SECONDS: Final = 60.0
"""How long to wait for an optional kind that is no longer served, before going on without it."""

Resources = Mapping[Kind, Resource]


def wanted_kinds(settings: Settings, provisioning: ProvisioningPolicy) -> tuple[Kind, ...]:
    """Return the kinds that the settings ask for."""
    return kinds_for(provisioning, setup=worker_setup_policy(settings), reports=settings.report_scores)


async def discover(client: Client, kinds: Collection[Kind]) -> Resources:
    """Return what the hub serves of `kinds`, and of CAPACITY_KINDS while there is a CapacityProvider of ours.

    Without one, nobody needs to follow all queues of the hub. Raises ApiError.
    """
    served = await client.discover(dict.fromkeys((*kinds, *CAPACITY_KINDS)))
    if await _provides_capacity(client, served):
        return served
    return {kind: resource for kind, resource in served.items() if kind in kinds}


async def _provides_capacity(client: Client, served: Resources) -> bool:
    if CAPACITY_PROVIDER not in served:
        return False
    try:
        providers = (await client.list(served[CAPACITY_PROVIDER])).items
    except Refused:  # an account of before has no such right
        return False
    return any(get_str(provider, "spec", "controllerName") == OUR_CONTROLLER for provider in providers)


class HubDiscovery:
    """Discovers one hub; its state outlives the sessions."""

    def __init__(
        self, settings: Settings, provisioning: ProvisioningPolicy, health: Health, server: str
    ) -> None:
        self._settings = settings
        self._kinds = wanted_kinds(settings, provisioning)
        self._health = health
        self._server = server
        self._kueue = UNKNOWN_KUEUE
        """The hub's Kueue, as it was known last."""
        self._unknown_logged = False
        self._logged = LogDeduplicator()
        self._missing_since: dict[Kind, float | None] = {}
        """Kinds that this hub has served: since when it does not (None: it does)."""

    async def wait_for_kinds(self, client: Client) -> Resources:
        """Return what the hub serves, once every required kind is served."""
        while True:
            pause = DISCOVERY_SECONDS
            self._health.request_sent()
            try:
                resources = await discover(client, self._kinds)
            except ApiError as error:
                self._health.request_failed(error)
                self._health.no_session(f"the API server does not answer: {error.message}")
                pause = max(pause, error.retry_after or 0.0)
                level = self._logged.level("kinds", type(error).__name__)
                log.log(level, "the API server does not answer; waiting", error=error.message)
            else:
                self._health.request_answered()
                wanted = (*REQUIRED_KINDS, *self._recently_served(resources))
                missing = [str(kind) for kind in wanted if kind not in resources]
                if not missing:
                    if self._logged.ended("kinds"):
                        self._logged.ended("hub")
                    return resources
                self._health.no_session(f"waiting for CRDs that are not installed: {', '.join(missing)}")
                level = self._logged.level("kinds", str(missing))
                log.log(level, "waiting for CRDs that are not installed", kinds=missing)
            await asyncio.sleep(pause)

    def _recently_served(self, resources: Resources) -> Iterable[Kind]:
        """Yield the missing kinds that were served until recently; clusters may depend on them."""
        now = time.monotonic()
        self._missing_since |= dict.fromkeys(resources, None)
        for kind in (*OPTIONAL_KINDS, ACCOUNT, PERMISSION, MANIFEST_WORK):
            if kind in self._missing_since and kind not in resources:
                since = self._missing_since[kind] = self._missing_since[kind] or now
                if now - since < MISSING_GRACE_SECONDS:
                    yield kind
                else:
                    del self._missing_since[kind]

    async def facts(self, client: Client, resources: Resources) -> HubFacts:
        """Return versions and limits of the hub. Raises ApiError."""
        schema = await client.schema(resources[MULTIKUEUE_CONFIG])
        facts = hub_facts(self._settings, resources, schema, await self._running_kueue(client))
        log.log(
            self._logged.level("hub", str((facts, resources)), logging.INFO),
            "found the hub",
            server=self._server,
            kueue=str(facts.kueue.release or ""),
            kueue_gates=dict(facts.kueue.gates or ()),
            clusters_max=facts.clusters_max,
            versions={kind.kind: resource.api_version for kind, resource in resources.items()},
        )
        return facts

    async def _running_kueue(self, client: Client) -> RunningKueue:
        needed, running = needs_kueue(self._settings), UNKNOWN_KUEUE
        if needed:
            running, problem = await running_kueue(client, self._settings.kueue_namespace)
            if problem:
                name = f"{self._settings.kueue_namespace}/{KUEUE_CONFIG_MAP}"
                level = self._logged.level("gates", problem)
                log.log(level, "Kueue's feature gates cannot be read", config_map=name, why=problem)
        self._kueue = known_kueue(self._settings, running, self._kueue)
        if needed and not (self._kueue.release or self._unknown_logged):
            self._unknown_logged = True
            log.info(
                "the release of the hub's Kueue is not known: what any release needs on a worker counts;"
                " allow to get its Deployment, or set kueue-version",
                namespace=self._settings.kueue_namespace,
            )
        return self._kueue
