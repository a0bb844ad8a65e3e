"""
A stand-in for the Job controller's Pods and for a kubelet: running Jobs have Pods, and those write lines.

It serves the logs, Pods and events of jobs; nothing is run. One line is written when a container
starts, and then one each `every` seconds.
"""

import time
from collections.abc import Iterable, Iterator
from hashlib import sha1
from typing import TYPE_CHECKING, ClassVar, Final

from placement_ac.core.api.constants import EVENT, JOB, Kind
from placement_ac.core.api.errors import Conflict, NotFound
from placement_ac.core.api.fields import key_of
from placement_ac.kube.client import Object
from placement_ac.kube.login import Login
from placement_lab.standins.informer import Key, Name, StandIn
from placement_lab.standins.multikueue import runs
from placement_lab.standins.multikueue.builders import pods_of
from placement_lab.standins.multikueue.objects import condition, format_time, job_is_finished

if TYPE_CHECKING:
    from placement_lab.hub import Hub

POD: Final = Kind("", "Pod", "pods", True, ("v1",))
NODES: Final = 4
"""The nodes of a worker, by name; there are no Node objects."""


class Kubelet(StandIn):
    """Gives each running Job of a worker its Pods. `hub`: the worker itself, which keeps their logs.

    `every`: the seconds between two lines of a container; None: there is only the first one.
    """

    name = "kubelet"
    kinds: ClassVar[tuple[Kind, ...]] = (JOB, POD)

    def __init__(self, login: Login, hub: "Hub", *, every: float | None = 1.0) -> None:
        super().__init__(login)
        self._hub = hub
        self._every = every
        self._steps: dict[tuple[str, str, str], int] = {}
        """The lines that each container has written after the first one."""

    def keys_for(self, kind: Kind, namespace: str, name: str) -> Iterable[Key]:
        """Return the key of a Job, or of the Job of a Pod."""
        if kind == JOB:
            yield "job", namespace, name
            return
        pod = self.objects(POD).get((namespace, name))
        for job in _jobs_of(pod or {}):
            yield "job", namespace, job

    async def reconcile(self, key: Key) -> None:
        where = (key[1], key[2])
        try:
            if key[0] == "step":
                self._step(where)
            else:
                await self._reconcile_job(where)
        except (Conflict, NotFound):  # outdated cache
            self.enqueue(key, after=0.01)

    async def _reconcile_job(self, where: Name) -> None:
        job, pods = self.objects(JOB).get(where), self._pods_of(where)
        running = bool(job and runs(job) and (job.get("status") or {}).get("startTime"))
        for pod in pods:
            of_another = job is None or pod["metadata"]["ownerReferences"][0]["uid"] != job["metadata"]["uid"]
            if of_another or not (running or (job and job_is_finished(job))):
                await self._remove(pod)
            elif job and job_is_finished(job):
                await self._end(pod, succeeded=condition(job, "Failed") is None)
        if job and running:
            there = {key_of(pod)[1] for pod in pods}
            for index in range(pods_of(job)):
                if (name := _pod_name(job, index)) not in there:
                    await self._start(_pod(job, name, index))

    def _pods_of(self, job: Name) -> list[Object]:
        pods = [pod for (namespace, _), pod in self.objects(POD).items() if namespace == job[0]]
        return [pod for pod in pods if job[1] in _jobs_of(pod)]

    async def _start(self, pod: Object) -> None:
        """Create a Pod that runs at once, with its first lines and an event."""
        namespace, name = key_of(pod)
        created = await self.client.create(POD.at("v1"), pod)
        self.informer.remember(POD, created)
        now = format_time(time.time())
        for container in _containers(pod):
            self._hub.write_log(
                namespace, name, container, f"{name} has started on {pod['spec']['nodeName']}"
            )
        self._next_step((namespace, name))
        await self._write_status(created, _running(pod, now))
        await self.client.create(EVENT.at("v1"), _event(created, now))

    async def _end(self, pod: Object, *, succeeded: bool) -> None:
        status = pod.get("status") or {}
        if status.get("phase") != "Running":
            return
        namespace, name = key_of(pod)
        for container in _containers(pod):
            self._hub.end_log(namespace, name, container)
        now, code = format_time(time.time()), 0 if succeeded else 1
        for entry in status["containerStatuses"]:
            started = (entry["state"].get("running") or {}).get("startedAt")
            reason = "Completed" if succeeded else "Error"
            ended = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": now}
            entry |= {"ready": False, "state": {"terminated": ended}}
        ready = [{"type": "Ready", "status": "False", "lastTransitionTime": now}]
        phase = "Succeeded" if succeeded else "Failed"
        await self._write_status(pod, status | {"phase": phase, "conditions": ready})

    async def _remove(self, pod: Object) -> None:
        namespace, name = key_of(pod)
        for container in _containers(pod):
            self._steps.pop((namespace, name, container), None)
        await self.client.delete(POD.at("v1"), name, namespace)
        self.informer.forget(POD, (namespace, name))

    async def _write_status(self, pod: Object, status: Object) -> None:
        namespace, name = key_of(pod)
        written = await self.client.merge(
            POD.at("v1"), name, {"status": status}, namespace=namespace, subresource="status"
        )
        self.informer.remember(POD, written)

    # -- lines

    def _next_step(self, pod: Name) -> None:
        if self._every is not None:
            self.enqueue(("step", *pod), after=self._every)

    def _step(self, where: Name) -> None:
        """Write the next line of each container of a Pod that runs."""
        pod = self.objects(POD).get(where)
        if pod is None or (pod.get("status") or {}).get("phase") not in (None, "Running"):
            return
        for container in _containers(pod):
            place = (*where, container)
            self._steps[place] = self._steps.get(place, 0) + 1
            self._hub.write_log(*place, f"step {self._steps[place]}")
        self._next_step(where)


def _jobs_of(pod: Object) -> list[str]:
    """Return the names of the Jobs that own a Pod; those of other kinds are not ours."""
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    return [str(owner["name"]) for owner in owners if owner["kind"] == JOB.kind]


def _pod_name(job: Object, index: int) -> str:
    uid = job["metadata"]["uid"]
    suffix = sha1(f"{uid}/{index}".encode()).hexdigest()[:5]  # noqa: S324  # a name
    return f"{job['metadata']['name']}-{index}-{suffix}"


def _pod(job: Object, name: str, index: int) -> Object:
    """Return a Pod as the Job controller makes it: its labels, and its owner."""
    metadata, template = job["metadata"], job["spec"]["template"]
    uid, of = metadata["uid"], metadata["name"]
    labels = {
        **(template.get("metadata", {}).get("labels") or {}),
        "batch.kubernetes.io/job-name": of,
        "batch.kubernetes.io/controller-uid": uid,
        "job-name": of,
        "controller-uid": uid,
    }
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": of, "uid": uid, "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner | {"blockOwnerDeletion": True}],
        },
        "spec": {**template["spec"], "nodeName": f"node-{index % NODES + 1}"},
    }


def _containers(pod: Object) -> Iterator[str]:
    return (str(container["name"]) for container in pod["spec"]["containers"])


def _running(pod: Object, now: str) -> Object:
    statuses = [
        {
            "name": name,
            "image": "none",
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for name in _containers(pod)
    ]
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
    return {
        "phase": "Running",
        "startTime": now,
        "podIP": "10.0.0.1",
        "conditions": ready,
        "containerStatuses": statuses,
    }


def _event(pod: Object, now: str) -> Object:
    """Return the event that a kubelet writes when a Pod's containers have started."""
    namespace, name = key_of(pod)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.started", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": name,
            "namespace": namespace,
            "uid": pod["metadata"]["uid"],
        },
        "type": "Normal",
        "reason": "Started",
        "message": f"Started container {next(_containers(pod))}",
        "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
