"""
The loop behind `demo --unsafe`: it makes the MultiKueueConfig list exactly the selected clusters, at once.

It replaces the controller for the rest of the demo. The controller itself has no such mode.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar

from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    LABEL_CLUSTER,
    LABEL_PLACEMENT,
    MANAGED_BY,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    OUR_CONTROLLER,
    PENDING,
    PLACEMENT_DECISION,
    READY,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.api.errors import Conflict
from placement_ac.core.api.fields import format_time
from placement_ac.core.credentials.named_secret import secret_names
from placement_ac.kube.client import Object
from placement_lab.standins.informer import Key, StandIn
from placement_lab.standins.kueue import NAMESPACE


class UnsafeController(StandIn):
    """Lists only the selected clusters, whatever runs elsewhere, and sets every check Ready."""

    name = "unsafe"
    kinds: ClassVar[tuple[Kind, ...]] = (
        SECRET,
        PLACEMENT_DECISION,
        ADMISSION_CHECK,
        MULTIKUEUE_CONFIG,
        MULTIKUEUE_CLUSTER,
        WORKLOAD,
    )

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        if kind == WORKLOAD:
            yield "workload", namespace, name
        elif kind == PLACEMENT_DECISION:
            yield from (("config", config) for _, config in self.objects(MULTIKUEUE_CONFIG))
        elif kind == MULTIKUEUE_CONFIG:
            yield "config", name

    async def reconcile(self, key: Key) -> None:
        try:
            if key[0] == "config":
                await self._reconcile_config(key[1])
            else:
                await self._set_checks_ready(self.objects(WORKLOAD).get((key[1], key[2])))
        except Conflict:
            self.enqueue(key, after=0.02)

    async def _reconcile_config(self, placement: str) -> None:
        config = self.objects(MULTIKUEUE_CONFIG).get(("", placement))
        wanted = {f"{placement}-{cluster}": cluster for cluster in self._selected(placement)}
        if config is None or not wanted:
            return
        existing = self.objects(MULTIKUEUE_CLUSTER)
        for name, cluster in wanted.items():
            if ("", name) not in existing:
                await self._create_cluster(name, placement, cluster)
        if config["spec"]["clusters"] != list(wanted):
            await self.patch(MULTIKUEUE_CONFIG, config, {"spec": {"clusters": list(wanted)}})
        for item in tuple(existing.values()):
            name, labels = item["metadata"]["name"], item["metadata"].get("labels") or {}
            if labels.get(LABEL_PLACEMENT) == placement and name not in wanted:
                await self.client.delete(self.informer.resources[MULTIKUEUE_CLUSTER], name)
                self.informer.forget(MULTIKUEUE_CLUSTER, ("", name))

    def _selected(self, placement: str) -> list[str]:
        return [
            entry["clusterName"]
            for item in self.objects(PLACEMENT_DECISION).values()
            if (item["metadata"].get("labels") or {}).get(LABEL_PLACEMENT) == placement
            for entry in (item.get("status") or {}).get("decisions") or ()
        ]

    async def _create_cluster(self, name: str, placement: str, cluster: str) -> None:
        names = (*secret_names(cluster), f"{MANAGED_BY}-{cluster}")
        secrets = [secret for secret in names if (NAMESPACE, secret) in self.objects(SECRET)]
        resource = self.informer.resources[MULTIKUEUE_CLUSTER]
        body: Object = {
            "metadata": {"name": name, "labels": {LABEL_PLACEMENT: placement, LABEL_CLUSTER: cluster}},
            "spec": {"clusterSource": {"kubeConfig": {"locationType": "Secret", "location": secrets[0]}}},
        }
        self.informer.remember(MULTIKUEUE_CLUSTER, await self.client.apply(resource, body))

    async def _set_checks_ready(self, workload: Object | None) -> None:
        """Set our pending checks of a Workload Ready."""
        if workload is None:
            return
        metadata = {key: workload["metadata"][key] for key in ("name", "namespace", "resourceVersion")}
        for admission_check in (workload.get("status") or {}).get("admissionChecks") or ():
            check = self.objects(ADMISSION_CHECK).get(("", admission_check["name"])) or {"spec": {}}
            if check["spec"].get("controllerName") != OUR_CONTROLLER or admission_check["state"] != PENDING:
                continue
            now = format_time(datetime.now(UTC))
            entry = {
                "name": admission_check["name"],
                "state": READY,
                "message": "go",
                "lastTransitionTime": now,
            }
            body = {"metadata": metadata, "status": {"admissionChecks": [entry]}}
            resource = self.informer.resources[WORKLOAD]
            await self.client.apply(resource, body, subresource="status", force=True)
