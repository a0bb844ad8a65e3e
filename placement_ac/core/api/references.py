"""
The objects that a Pod names, without which it does not start: ConfigMaps, Secrets, volume claims … Pure.

References that are optional do not count, nor do image pull secrets: a Pod starts without them. Anybody who
may create a Job writes them: at most REFERENCES_MAX are read.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from placement_ac.core.api.fields import Obj, get_dict, get_list, get_str, get_value

REFERENCES_MAX: Final = 64
"""Of one job: the rest is not looked for."""
_NAME_CHARS: Final = 253

Reference = tuple[str, str]
"""The plural of a kind, and a name in the job's namespace."""


def references(pods: Iterable[Obj]) -> tuple[Reference, ...]:
    """Return what Pods of these specs name, sorted."""
    found = (ref for pod in pods for ref in _of_pod(pod) if 0 < len(ref[1]) <= _NAME_CHARS)
    return tuple(sorted(islice(dict.fromkeys(found), REFERENCES_MAX)))


def _of_pod(pod: Obj) -> Iterator[Reference]:
    account = get_str(pod, "serviceAccountName") or get_str(pod, "serviceAccount")
    if account != "default":  # every namespace has it
        yield "serviceaccounts", account
    for claim in get_list(pod, "resourceClaims"):
        yield "resourceclaimtemplates", get_str(claim, "resourceClaimTemplateName")
    for volume in get_list(pod, "volumes"):
        yield "persistentvolumeclaims", get_str(volume, "persistentVolumeClaim", "claimName")
        yield from _required("configmaps", get_dict(volume, "configMap"))
        yield from _required("secrets", get_dict(volume, "secret"), "secretName")
        for source in get_list(volume, "projected", "sources"):
            yield from _required("configmaps", get_dict(source, "configMap"))
            yield from _required("secrets", get_dict(source, "secret"))
    for container in (*get_list(pod, "initContainers"), *get_list(pod, "containers")):
        for source in get_list(container, "envFrom"):
            yield from _required("configmaps", get_dict(source, "configMapRef"))
            yield from _required("secrets", get_dict(source, "secretRef"))
        for variable in get_list(container, "env"):
            yield from _required("configmaps", get_dict(variable, "valueFrom", "configMapKeyRef"))
            yield from _required("secrets", get_dict(variable, "valueFrom", "secretKeyRef"))


def _required(plural: str, source: Obj, field: str = "name") -> Iterator[Reference]:
    if get_value(source, "optional") is not True:
        yield plural, get_str(source, field)
