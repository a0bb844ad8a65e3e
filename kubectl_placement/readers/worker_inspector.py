"""
Inspect workers with the credentials that the hub has for them, several at once, each within the timeout.

It only reads, and reviews its own rights. Every error becomes a result whose text quotes nothing from a
Secret, a plugin or a worker.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from kubectl_placement.doctor.worker_inspection import (
    DEFINITION_KINDS,
    INSPECTED_KINDS,
    AccessProblem,
    WorkerInspection,
    WorkerTarget,
    with_valid_names,
)
from kubectl_placement.readers.foreign_jobs import find_foreign_jobs
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.errors import ApiError
from placement_ac.core.api.fields import Key
from placement_ac.core.inputs.fitness import Unknown, WorkerRequirements
from placement_ac.core.kubeconfig.source import CredentialSource, Unusable
from placement_ac.workers.connector import (
    HubForbidden,
    WorkerConnector,
    WorkerError,
    WorkerLogin,
    WorkerTimeout,
    worker_error_text,
)
from placement_ac.workers.queries import WorkerQueries
from placement_ac.workers.unknown_copies import UnknownCopyReader

CONCURRENT_WORKERS: Final = 8
"""Workers at the same time."""
UNAUTHORIZED: Final = 401


@dataclass(frozen=True)
class WorkerInspector:
    """Inspects workers through `connector`. `workloads`: those of the hub, by namespace and name.

    `plugins`: whether it has plugins for ClusterProfiles.
    """

    connector: WorkerConnector
    needs: WorkerRequirements
    kueue_namespace: str
    workloads: Collection[Key]
    now: datetime
    plugins: bool = field(default=False, kw_only=True)
    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(CONCURRENT_WORKERS), init=False
    )

    @cached_property
    def _unknown_copies(self) -> UnknownCopyReader:
        return UnknownCopyReader(self.connector, WORKLOAD.at(self.needs.version), self.workloads.__contains__)

    async def inspect(self, targets: Iterable[WorkerTarget]) -> tuple[WorkerInspection, ...]:
        """Return the result for each target, in order. Raises only CancelledError."""
        return tuple(await asyncio.gather(*map(self._inspect_all, targets)))

    async def _inspect_all(self, target: WorkerTarget) -> WorkerInspection:
        found, source = await self._inspect(target), target.credential
        if found.access_problem or not isinstance(source, CredentialSource):
            return found
        return replace(found, unknown_copies=await self._unknown_copies.read(source, self.now))

    async def _inspect(self, target: WorkerTarget) -> WorkerInspection:
        source = target.credential
        if source is None:
            return WorkerInspection(target, AccessProblem.NO_RIGHT)
        if isinstance(source, Unusable):
            return WorkerInspection(
                target, AccessProblem.NO_CREDENTIALS, f"there are no usable credentials: {source.why}"
            )
        if source.kind == "ClusterProfile" and not self.plugins:
            return WorkerInspection(target, AccessProblem.NO_PLUGIN)
        async with self._slots:
            try:
                return await self._log_in_and_ask(target, source)
            except HubForbidden as why:
                return WorkerInspection(target, AccessProblem.NO_RIGHT, str(why))
            except WorkerError as why:
                return WorkerInspection(target, AccessProblem.UNREACHABLE, str(why))
            except Exception:  # whatever one worker answers must not stop the others
                message = (
                    f"the worker of {source.kind} {source.name} did not answer like a Kubernetes API server"
                )
                return WorkerInspection(target, AccessProblem.UNREACHABLE, message)

    async def _log_in_and_ask(self, target: WorkerTarget, source: CredentialSource) -> WorkerInspection:
        """Log in to the worker and inspect it. Raises HubForbidden or WorkerError."""
        deadline = self.connector.deadline()
        try:
            config = await self.connector.get_credential(source, deadline)
            login = await self.connector.login(config, deadline)
        except (HubForbidden, WorkerTimeout):
            raise
        except WorkerError as why:
            return WorkerInspection(target, AccessProblem.NO_CREDENTIALS, str(why))
        try:
            message = f"the worker of {login.described_as} did not answer"
            return await self.connector.within(deadline, self._ask(target, login), message)
        except ApiError as error:
            trouble = AccessProblem.REJECTED if error.status == UNAUTHORIZED else AccessProblem.UNREACHABLE
            return WorkerInspection(target, trouble, worker_error_text(error, login.described_as, "in"))

    async def _ask(self, target: WorkerTarget, login: WorkerLogin) -> WorkerInspection:
        async with self.connector.client(login) as client:
            ask = WorkerQueries(client, login.described_as)
            findings = await ask.findings(self.needs, self.kueue_namespace)
            things, user, config, foreign = await asyncio.gather(
                ask.objects((*INSPECTED_KINDS, *DEFINITION_KINDS)),
                ask.user(),
                ask.kueue_config(self.kueue_namespace),
                ask.request(
                    "get jobs",
                    lambda: find_foreign_jobs(client, WORKLOAD.at(self.needs.version), target.jobs),
                ),
            )
        named = {
            kind: raw if isinstance(raw, Unknown) else with_valid_names(raw) for kind, raw in things.items()
        }
        return WorkerInspection(
            target, findings=findings, objects=named, foreign_jobs=foreign, kueue_config=config, user=user
        )
