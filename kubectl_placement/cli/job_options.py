"""
The options of the commands about jobs, and how those read a hub: with the rights of a job's owner.

They read no Secret. An owner may often list Workloads, LocalQueues and events in one namespace only; a part
that cannot be read is left out, with a note that names what opens it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import click

from kubectl_placement.access.methods import AccessOptions
from kubectl_placement.cli.hub_options import (
    DUMP_OPTION,
    EXPLAIN_KINDS,
    SETTINGS_OPTIONS,
    HubReading,
    HubSource,
    read_hub,
    read_once,
)
from kubectl_placement.cli.job_access import ACCESS_OPTIONS
from kubectl_placement.hub.requirements import (
    missing_rights_text,
    not_served_text,
    resources_text,
    unreadable,
)
from kubectl_placement.readers.hub_reader import Namespaces, read_kinds
from placement_ac.cli.login_options import LOGIN, option_group, with_client
from placement_ac.core.api.constants import (
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    EVENT,
    LOCAL_QUEUE,
    MANAGED_CLUSTER,
    MULTIKUEUE_CLUSTER,
    MULTIKUEUE_CONFIG,
    PLACEMENT,
    SECRET,
    WORKLOAD,
    Kind,
)
from placement_ac.core.decisions import SOURCE
from placement_ac.kube.client import Client

LIST_KINDS: Final = (WORKLOAD, LOCAL_QUEUE, CLUSTER_QUEUE, ADMISSION_CHECK, MULTIKUEUE_CLUSTER)
"""The kinds that a list of jobs is made of."""
STORY_KINDS: Final = (*(kind for kind in EXPLAIN_KINDS if kind != SECRET), EVENT)
"""Those of a story with its table of filters and scores."""
OF_A_NAMESPACE: Final = (WORKLOAD, LOCAL_QUEUE, EVENT)
"""Of these, an owner may often list those of one namespace only."""
JOB_VIEWER: Final = "placement-ac-job-viewer"
JOB_VIEWER_KINDS: Final = (ADMISSION_CHECK, CLUSTER_QUEUE, MULTIKUEUE_CLUSTER)
"""The kinds that this ClusterRole lets owners of jobs read."""
EXPLAIN_NEEDS: Final = (*JOB_VIEWER_KINDS, MULTIKUEUE_CONFIG, PLACEMENT, SOURCE.kind, MANAGED_CLUSTER)
"""Without one of these there is no table of filters and scores."""


@dataclass(frozen=True, slots=True)
class JobSource(HubSource):
    """Where to read jobs; `namespace` stays that of Placements."""

    job_namespace: str | None = None
    """None: that of the context, or with a dump any."""
    all_namespaces: bool = False
    cluster_proxy: str = ""
    cluster_proxy_ca: Path | None = None
    access_config: Path | None = None

    def access(self, kueue_namespace: str) -> AccessOptions:
        """Return the access methods to clusters; Kueue's credentials are none of them."""
        return AccessOptions(
            self.kubeconfig,
            self.cluster_proxy,
            self.cluster_proxy_ca,
            access_config=self.access_config,
            kueue_namespace=kueue_namespace,
            impersonation=self.impersonation,
        )

    def space(self, of_context: str) -> str:
        """Return the namespace of the jobs; "": all."""
        return "" if self.all_namespaces else self.job_namespace or of_context


_WHERE: Final = (
    *LOGIN,
    click.Option(
        ["-n", "--namespace", "job_namespace"],
        metavar="NAMESPACE",
        help="The namespace of the job.  [default: that of the context]",
    ),
    click.Option(["-A", "--all-namespaces"], is_flag=True, help="Look in all namespaces."),
    *SETTINGS_OPTIONS,
    DUMP_OPTION,
)
list_options = option_group("where", JobSource, *_WHERE)
"""The options that say where jobs are."""
story_options = option_group("where", JobSource, *_WHERE, *ACCESS_OPTIONS)
"""The same for a command that also reads Pods."""


def places(space: str, kinds: Collection[Kind]) -> Namespaces:
    """Return where those of the kinds are read that are read in one namespace."""
    return {kind: (space,) for kind in kinds if kind in OF_A_NAMESPACE}


def read_jobs(where: JobSource) -> tuple[HubReading, str]:
    """Read what a list of jobs needs, and return it with the namespace of the jobs ("": all)."""
    if where.dump_files:
        return read_once(where, LIST_KINDS), where.space("")

    async def read(client: Client) -> tuple[HubReading, str]:
        space = where.space(client.login.namespace)
        return await read_hub(client, where, LIST_KINDS, within=places(space, LIST_KINDS)), space

    return with_client(where, read)


async def read_story(client: Client, where: JobSource, space: str) -> tuple[HubReading, Namespaces]:
    """Read what a story needs; return it with where its namespaced kinds were read.

    Other jobs count for the points of clusters, so Workloads and queues are read in all namespaces. Without
    that right: in that of the job.
    """
    within: dict[Kind, tuple[str, ...]] = {EVENT: (space,)}
    reading = await read_hub(client, where, STORY_KINDS, within=within)
    refused = [kind for kind in (WORKLOAD, LOCAL_QUEUE) if unreadable(reading.dump, (kind,))]
    if not (refused and space):
        return reading, within
    within |= dict.fromkeys(refused, (space,))
    dump = reading.dump.with_kinds_of(await read_kinds(client, refused, within))
    return replace(reading, view=replace(reading.view, dump=dump)), within


def require_jobs(reading: HubReading, space: str) -> None:
    """Raise ClickException if the hub has no Workloads, or the caller may not list them there."""
    if problem := not_served_text(reading.dump, (WORKLOAD,)):
        raise click.ClickException(problem)
    for right in reading.dump.missing:
        if right.kind == WORKLOAD:
            elsewhere = "" if space else "name your namespace with -n, or "
            raise click.ClickException(
                f"{elsewhere}ask an admin for the right to {right} (check: {right.check_command})"
            )


def unseen(reading: HubReading) -> Iterator[str]:
    """Yield the parts of a list or a story that the caller may not see, with what opens them."""
    missing = [right for right in reading.dump.missing if right.kind != WORKLOAD]
    of_role = [right for right in missing if right.kind in JOB_VIEWER_KINDS]
    if of_role:
        yield (
            f"ask an admin to bind ClusterRole {JOB_VIEWER} to you (kubectl create clusterrolebinding "
            f"{JOB_VIEWER} --clusterrole={JOB_VIEWER} --user=YOU): names of clusters, answers of checks and "
            f"stopped queues are unknown, because you may not list {resources_text(of_role)}"
        )
    for right in missing:
        if right.kind in OF_A_NAMESPACE:
            part = _PARTS[right.kind]
            yield f"ask an admin for the right to {right} (check: {right.check_command}): {part}"


_PARTS: Final = {
    LOCAL_QUEUE: "whether its queue exists and is stopped is unknown",
    EVENT: "earlier tries and the reasons for them are unknown",
}


def why_unexplained(reading: HubReading) -> str:
    """Return why there is no table of filters and scores; "" if there can be one."""
    missing = [right for right in reading.dump.missing if right.kind in EXPLAIN_NEEDS]
    if missing:
        return f"no table of filters and scores: {missing_rights_text(missing)}"
    if reading.controller.problem and reading.dump.live:
        why = reading.controller.problem
        return f"no table of filters and scores: the controller's settings are unknown: {why}"
    return ""
