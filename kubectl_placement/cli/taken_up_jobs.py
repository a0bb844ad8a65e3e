"""
Read where a job runs whose worker was lost and came back, for the commands that reach it there.

A module of its own: they load what it needs only for such a job.
"""

from datetime import UTC, datetime

from kubectl_placement.hub.dump import Object
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.readers.hub_reader import read_kinds
from kubectl_placement.status.taken_up import TakenUp, taken_up
from placement_ac.config.load import load
from placement_ac.core.api.constants import ADMISSION_CHECK, EVENT, MULTIKUEUE_CLUSTER
from placement_ac.core.api.fields import namespace_of
from placement_ac.kube.client import Client


async def read_taken_up(client: Client, workload: Object) -> TakenUp | None:
    """Return where a job runs other than Kueue's record says, as far as the caller may read that.

    None: nothing shows it. Raises ApiError if the hub does not answer.
    """
    kinds = (MULTIKUEUE_CLUSTER, ADMISSION_CHECK, EVENT)
    dump = await read_kinds(client, kinds, {EVENT: (namespace_of(workload),)})
    return taken_up(HubView(dump, load({}, {}).settings, datetime.now(UTC)), workload)
