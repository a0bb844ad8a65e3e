"""
Whose is an object on a worker: read from what the MultiKueue of a hub writes on the copies that it creates.

Pure. docs/develop/kueue.md has the table of kinds and releases. In each release, the copy of a job has the
origin in a label, and names its Workload: in the label PREBUILT_WORKLOAD until 0.17, from 0.18 on in the
annotation of that name (gate WorkloadIdentifierAnnotations). A LeaderWorkerSet has one Workload for each
replica, so its copy names none, but the uid of the hub's object.
"""

from typing import NamedTuple

from placement_ac.core.api.constants import (
    ANNOTATION_ORIGIN_UID,
    LABEL_ORIGIN,
    POD_GROUP,
    PREBUILT_WORKLOAD,
)
from placement_ac.core.api.fields import Obj, get_str


class CopyOwner(NamedTuple):
    """The hub, the Workload and the job that an object on a worker names; "" for each that it does not."""

    origin: str = ""
    """`multiKueue.origin` of the hub's Kueue."""
    workload: str = ""
    """The name of the Workload."""
    job_uid: str = ""
    """The uid of the job on the hub."""

    @property
    def is_sent(self) -> bool:
        """Whether a MultiKueue has created the object; otherwise it is somebody else's."""
        return any(self)

    def is_of(self, workload: str, job_uid: str = "") -> bool:
        """Whether it is the copy of the job with this Workload and uid on the hub ("": not known)."""
        if self.workload:
            return self.workload == workload
        return self.job_uid == job_uid if self.job_uid and job_uid else self.is_sent


def copy_owner(obj: Obj) -> CopyOwner:
    """Return whose an object on a worker is; its metadata is enough."""
    return CopyOwner(
        get_str(obj, "metadata", "labels", LABEL_ORIGIN),
        _annotation_or_label(obj, PREBUILT_WORKLOAD),
        get_str(obj, "metadata", "annotations", ANNOTATION_ORIGIN_UID),
    )


def pod_group(pod: Obj) -> str:
    """Return the group of a Pod, which has the name of its Workload; "" if it is in none.

    The Pods that a StatefulSet or a LeaderWorkerSet creates on a worker have no origin, but a group.
    """
    return _annotation_or_label(pod, POD_GROUP)


def _annotation_or_label(obj: Obj, key: str) -> str:
    """Kueue reads the annotation first: an object that an older release has created may have both."""
    return get_str(obj, "metadata", "annotations", key) or get_str(obj, "metadata", "labels", key)
