"""
The Pods of a job on its cluster, as far as the caller has a way there.

`PodReader` is all that a story needs to know of that way.
"""

from typing import Protocol

from kubectl_placement.story.model import JobLine
from kubectl_placement.story.pods import PodsThere
from placement_ac.kube.client import Client


class PodReader(Protocol):
    """Reads the Pods of a job that runs on a cluster, as the caller; the reason why not is an answer, too."""

    async def __call__(self, hub: Client, job: JobLine) -> PodsThere: ...


async def read_pods(hub: Client, job: JobLine) -> PodsThere:
    """Return the Pods of a job on its cluster. Never raises for a cluster that does not answer."""
    return PodsThere(job.cluster, problem="this version reads no Pods of other clusters")
