"""Objects on a job's cluster that the caller may not read: which right is missing, and the consequence."""

from dataclasses import dataclass

from kubectl_placement.access.open import OpenCluster
from kubectl_placement.access.target import FORBIDDEN
from kubectl_placement.hub.dump import MissingRight, Object
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.errors import NotFound, Refused


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that the caller may not read on a cluster. Its text is for the caller."""

    cluster: str
    right: MissingRight
    answer: str
    """The server's message, which names the user."""
    effect: str
    """The consequence, as a clause."""

    def __str__(self) -> str:
        right = self.right
        role = f"--verb={right.verb} --resource={right.kind} -n {right.namespace}"
        return (
            f"ask an admin of cluster {self.cluster} for the right to {right} there (check: "
            f"{right.check_command}; `kubectl create role job-reader {role}` and a RoleBinding give it): "
            f"{self.answer}; {self.effect}"
        )


class ObjectReader:
    """Reads objects in one namespace of a cluster. `unread`: of each kind, the first that it may not read."""

    def __init__(self, cluster: OpenCluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self.unread: dict[Kind, Unread] = {}

    async def get(self, resource: Resource, name: str, effect: str) -> Object | None:
        """Return an object; None: there is none, or the caller may not read it, with this `effect`.

        Raises ApiError.
        """
        try:
            return await self._cluster.client.get(resource, name, self._namespace)
        except NotFound:
            return None
        except Refused as error:
            if error.status != FORBIDDEN:
                raise
            self._note(MissingRight("get", resource.of, self._namespace, name), error, effect)
            return None

    async def list(self, resource: Resource, effect: str) -> tuple[Object, ...]:
        """Return all objects of a kind; none if the caller may not list them. Raises ApiError."""
        try:
            return (await self._cluster.client.list(resource, self._namespace)).items
        except Refused as error:
            if error.status != FORBIDDEN:
                raise
            self._note(MissingRight("list", resource.of, self._namespace), error, effect)
            return ()

    def _note(self, right: MissingRight, error: Refused, effect: str) -> None:
        self.unread.setdefault(right.kind, Unread(self._cluster.name, right, error.message, effect))
