"""
The floor, the minimal program: it watches decisions and applies the MultiKueueConfig of each at once.

`python -m bench.floor KUBECONFIG [--whole] [--shared-names]`: a bare aiohttp loop in its own process. It
decides, checks and remembers nothing, so its time is that of API server and network. With `--whole` it first
writes the MultiKueueClusters of each decision and finally the condition of its check, as the controller must.
With `--shared-names` a MultiKueueCluster has the name of its cluster.
"""

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import orjson

APPLY: Final = "application/apply-patch+yaml"
KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
DECISIONS: Final = (
    "/apis/cluster.open-cluster-management.io/v1beta1/namespaces/kueue-system/placementdecisions"
)
PLACEMENT: Final = "cluster.open-cluster-management.io/placement"
MANAGER: Final = "bench-floor"
MADE: Final = {"app.kubernetes.io/created-by": "placement-ac-bench"}
"""The label of objects to be deleted, as in `bench.scene`, whose import would be part of this start."""
AT_ONCE: Final = 32
PAUSE_SECONDS: Final = 0.1
"""The pause before a retry when the API server does not answer."""

Object = dict[str, Any]


class Forgotten(Exception):
    """The watch has expired: list again."""


class Floor:
    def __init__(self, session: aiohttp.ClientSession, server: str, *, whole: bool, shared: bool) -> None:
        self._session, self._server, self._whole, self._shared = session, server, whole, shared
        self._tasks: set[asyncio.Task[None]] = set()
        self._version = ""

    async def run(self) -> None:
        """List, then watch for ever; a watch that ends is resumed at its last version."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, Forgotten):
                await self._list()
                while True:
                    with contextlib.suppress(aiohttp.ClientError, OSError):
                        await self._watch()
                    await asyncio.sleep(PAUSE_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _list(self) -> None:
        async with self._session.get(self._server + DECISIONS) as answer:
            listing = orjson.loads(await answer.read())
        for item in listing["items"]:
            self._begin(item)
        self._version = listing["metadata"]["resourceVersion"]

    async def _watch(self) -> None:
        query = {"watch": "true", "resourceVersion": self._version}
        async with self._session.get(self._server + DECISIONS, params=query) as answer:
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    event = orjson.loads(line)
                    if event["type"] == "ERROR":
                        raise Forgotten
                    self._begin(event["object"])

    def _begin(self, decision: Object) -> None:
        self._version = decision["metadata"]["resourceVersion"]
        task = asyncio.create_task(self._decided(decision))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _decided(self, decision: Object) -> None:
        placement = decision["metadata"]["labels"][PLACEMENT]
        clusters = [entry["clusterName"] for entry in decision.get("status", {}).get("decisions") or ()]
        if not clusters:
            return
        names = clusters if self._shared else [f"{placement}-{cluster}" for cluster in clusters]
        if self._whole:
            await asyncio.gather(*(self._cluster(*pair) for pair in zip(names, clusters, strict=True)))
        await self._apply("MultiKueueConfig", "multikueueconfigs", placement, {"spec": {"clusters": names}})
        if self._whole:
            await self._condition(f"c{placement[1:]}")

    async def _cluster(self, name: str, cluster: str) -> None:
        location = {"location": f"multikueue-{cluster}", "locationType": "Secret"}
        spec, metadata = {"clusterSource": {"kubeConfig": location}}, {"name": name, "labels": MADE}
        whole = {"metadata": metadata, "spec": spec}
        await self._apply("MultiKueueCluster", "multikueueclusters", name, whole)

    async def _condition(self, check: str) -> None:
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        status = {"status": {"conditions": [condition]}}
        await self._apply("AdmissionCheck", "admissionchecks", check, status, "/status")

    async def _apply(self, kind: str, plural: str, name: str, rest: Object, subresource: str = "") -> None:
        body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": name}} | rest
        async with self._session.patch(
            f"{self._server}{KUEUE}/{plural}/{name}{subresource}",
            params={"fieldManager": MANAGER, "force": "true"},
            data=orjson.dumps(body),
            headers={"Content-Type": APPLY, "User-Agent": MANAGER},
        ) as answer:
            if answer.status >= 300:
                sys.stderr.write(f"{name}: {answer.status} {await answer.text()}\n")


async def main(words: Sequence[str]) -> None:
    from placement_ac.kube.login import Login  # noqa: PLC0415  # what a login costs is part of any start

    login = Login(Path(words[0]))
    timeout = aiohttp.ClientTimeout(total=None)
    async with login.session(timeout=timeout, connections=AT_ONCE) as session:
        await Floor(session, login.server, whole="--whole" in words, shared="--shared-names" in words).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
