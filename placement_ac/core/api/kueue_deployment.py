"""
Kueue's Deployment on a hub: a Helm release of another name has another one. Pure.
"""

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from placement_ac.core.api.constants import KUEUE_MANAGER, LABEL_APP_NAME
from placement_ac.core.api.fields import Obj, key_of, labels_of

T = TypeVar("T", bound=Obj)

KUEUE_SELECTOR: Final = "control-plane=controller-manager"
"""The label that Kueue's manifests and chart give its manager, whatever `nameOverride` says."""
_PLANE: Final = tuple(KUEUE_SELECTOR.split("="))
_CHART_LABEL: Final = "helm.sh/chart"
_KUEUE: Final = "kueue"


def is_kueue(deployment: Obj) -> bool:
    """Whether a Deployment runs Kueue's manager: by its name, or by its labels."""
    labels = labels_of(deployment)
    chart = str(labels.get(_CHART_LABEL, ""))
    is_of_kueue = labels.get(LABEL_APP_NAME) == _KUEUE or chart.startswith(f"{_KUEUE}-")
    return key_of(deployment)[1] == KUEUE_MANAGER or (is_of_kueue and labels.get(_PLANE[0]) == _PLANE[1])


def kueue_deployments(deployments: Iterable[T], namespace: str = "") -> Iterator[T]:
    """Yield Kueue's Deployments in a namespace ("": in all)."""
    return (
        deployment
        for deployment in deployments
        if is_kueue(deployment) and namespace in ("", key_of(deployment)[0])
    )
