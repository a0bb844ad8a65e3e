"""The names of kinds in kubectl. Pure."""

from typing import Final

from placement_ac.core.api.constants import ADMISSION_CHECK, MANAGED_CLUSTER, WORKLOAD, Kind

_SHORT_NAMES: Final = {
    ADMISSION_CHECK: ("ac",),
    MANAGED_CLUSTER: ("mcl", "mcls"),
    WORKLOAD: ("wl", "kwl", "kueueworkload", "kueueworkloads"),
}
"""`shortNames` of the CRDs; `wl` is Kueue's of old."""


def names_of_kind(kind: Kind, short: str) -> tuple[str, ...]:
    """Return every name that kubectl accepts for a kind, and `short`; all in lower case."""
    singular = kind.kind.lower()
    with_version = (f"{kind.plural}.{version}.{kind.group}" for version in kind.versions)
    full = str(kind), f"{singular}.{kind.group}", *with_version
    return short, f"{short}s", singular, kind.plural, *_SHORT_NAMES.get(kind, ()), *full
