"""
Pod templates without the values that may be secret: variables, arguments, commands, annotations.

Pure. Only the fields named here are kept, so that a field that somebody adds to Pods is left out.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final

from kubectl_placement.scheduling.engine import DISABLE_ANNOTATION
from placement_ac.config.load import PREFIX
from placement_ac.config.settings import Settings
from placement_ac.core.api.constants import ANNOTATION_CLUSTER_NAMES, OUR_DOMAIN
from placement_ac.core.api.fields import get_dict, get_list

REDACTED: Final = "redacted"
_SETTINGS: Final = frozenset(f"{PREFIX}{name.upper()}" for name in Settings.model_fields)
"""The variables that the controller reads: nobody keeps a secret in one."""
_READ_ANNOTATIONS: Final = (ANNOTATION_CLUSTER_NAMES, DISABLE_ANNOTATION)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_POD_FIELDS: Final = (
    "serviceAccountName",
    "nodeSelector",
    "tolerations",
    "priorityClassName",
    "activeDeadlineSeconds",
)
_ASKED: Final = ("resourceClaims", "resources", "runtimeClassName", "overhead")
"""Of a job's Pods: what they ask for, beside their containers."""
_CONTAINER_FIELDS: Final = ("name", "image", "resources")
_MOUNT_FIELDS: Final = ("name", "mountPath", "subPath", "readOnly")
_CONTAINER_LISTS: Final = ("initContainers", "containers")
_VOLUME_SOURCES: Final = ("configMap", "secret", "emptyDir", "projected", "persistentVolumeClaim", "hostPath")
"""Those that name an object or a path; others, such as csi, have attributes of any content."""


def is_read(annotation: str) -> bool:
    """Whether a command reads an annotation: placement-ac's, and those of Kueue and OCM about clusters."""
    return annotation.startswith(OUR_DOMAIN) or annotation in _READ_ANNOTATIONS


def job_template(template: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Pod template of a job, with all that decides to which cluster it goes."""
    kept = pod_template(template)
    annotations = get_dict(template, "metadata", "annotations")
    if chosen := {key: value for key, value in annotations.items() if is_read(key)}:
        kept["metadata"]["annotations"] = chosen
    required = _kept(get_dict(template, "spec", "affinity", "nodeAffinity"), (_REQUIRED,))
    kept["spec"] |= _kept(get_dict(template, "spec"), _ASKED)
    if required:
        kept["spec"]["affinity"] = {"nodeAffinity": required}
    return kept


def pod_template(template: Mapping[str, Any], with_args: Collection[str] = ()) -> dict[str, Any]:
    """Return a Pod template; `with_args`: the controller's containers, with their arguments and settings."""
    spec = get_dict(template, "spec")
    kept = _kept(spec, _POD_FIELDS)
    for field in _CONTAINER_LISTS:
        if field in spec:
            kept[field] = [_container(container, with_args) for container in get_list(spec, field)]
    if "volumes" in spec:
        kept["volumes"] = [_kept(volume, ("name", *_VOLUME_SOURCES)) for volume in get_list(spec, "volumes")]
    return {"metadata": _kept(get_dict(template, "metadata"), ("labels",)), "spec": kept}


def _container(container: Mapping[str, Any], with_args: Collection[str]) -> dict[str, Any]:
    kept = _kept(container, _CONTAINER_FIELDS)
    if "args" in container and container.get("name") in with_args:
        kept["args"] = container["args"]
    if "volumeMounts" in container:
        kept["volumeMounts"] = [_kept(mount, _MOUNT_FIELDS) for mount in get_list(container, "volumeMounts")]
    if "env" in container:
        is_ours = container.get("name") in with_args
        kept["env"] = [_variable(entry, is_ours=is_ours) for entry in get_list(container, "env")]
    return kept


def _variable(entry: Mapping[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """Return a variable; only settings of the controller keep their values, and only in its own Pods."""
    is_setting = is_ours and str(entry.get("name", "")) in _SETTINGS
    return dict(entry) if is_setting or "value" not in entry else {**entry, "value": REDACTED}


def _kept(obj: Mapping[str, Any], fields: Collection[str]) -> dict[str, Any]:
    return {key: obj[key] for key in fields if key in obj}
