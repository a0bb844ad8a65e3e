"""Objects of files, by kind: the kinds that a dump may contain. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kubectl_placement.hub.dump import Dump, Object
from kubectl_placement.hub.kinds import ALL_KINDS, JOB_DEFAULT_KINDS
from placement_ac.core.api.constants import Kind, Resource
from placement_ac.core.api.fields import Key, key_of

_BY_NAME: Final = {(kind.group, kind.kind): kind for kind in ALL_KINDS}
_IN_FILES: Final = _BY_NAME | {(kind.group, kind.kind): kind for kind in JOB_DEFAULT_KINDS}


def kind_of(obj: Mapping[str, Any]) -> tuple[Kind | None, str]:
    """Return the kind and the version of an object; None: a dump does not contain the kind."""
    return _kind_of(obj, _BY_NAME)


def _kind_of(obj: Mapping[str, Any], by_name: Mapping[tuple[str, str], Kind]) -> tuple[Kind | None, str]:
    group, _, version = str(obj.get("apiVersion", "")).rpartition("/")
    return by_name.get((group, str(obj.get("kind", "")))), version


def dump_of(objects: Iterable[Object], empty: Iterable[Resource] = ()) -> Dump:
    """Return the objects of files by kind. The last object of a name wins; unknown kinds are ignored.

    `empty`: kinds of which it is known that there may be no object.
    """
    objects_by_kind: dict[Kind, dict[Key, Object]] = {resource.of: {} for resource in empty}
    served: dict[Kind, Resource] = {resource.of: resource for resource in empty}
    for obj in objects:
        kind, version = _kind_of(obj, _IN_FILES)
        if kind is not None:
            objects_by_kind.setdefault(kind, {})[key_of(obj)] = obj
            served.setdefault(kind, kind.at(version))
    return Dump({kind: tuple(things.values()) for kind, things in objects_by_kind.items()}, served)
