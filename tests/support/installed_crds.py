"""The CustomResourceDefinitions on an API server that all tests share: each test finds those it wants."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import requests

Object = dict[str, Any]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SERVED_SECONDS = 60.0
STEP_SECONDS = 0.05


class InstalledCrds:
    """Installs and removes CRDs with an admin's session."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session, self._url = session, url
        self._specs: dict[str, Object] = {}
        """The spec that the API server has made of a CRD, by the CRD as it was sent."""

    def restore(self, wanted: Sequence[Object]) -> None:
        """Leave exactly the wanted CRDs, unchanged and served; one that was changed is made again."""
        there = {item["metadata"]["name"]: item for item in self._items()}
        names = {crd["metadata"]["name"]: crd for crd in wanted}
        absent = [name for name, crd in names.items() if not self._is_unchanged(there.get(name), crd)]
        removed = [item for name, item in there.items() if name not in names or name in absent]
        for item in removed:
            self._remove(item)
        for item in removed:
            self._until(self._is_gone, item, "removed")
        for name in absent:
            self._post(names[name])
        for name in absent:
            self._until(self._is_served, names[name], "served")
        for name in absent:
            self._specs[_sent(names[name])] = self._get(f"{CRDS}/{name}").json()["spec"]

    def _is_unchanged(self, item: Object | None, crd: Object) -> bool:
        if item is None or "deletionTimestamp" in item["metadata"]:
            return False
        return bool(item["spec"] == self._specs.get(_sent(crd)))

    def _items(self) -> list[Object]:
        return list(self._get(CRDS).json()["items"])

    def _remove(self, item: Object) -> None:
        """A second DELETE of one that is on its way out is harmless."""
        self._session.delete(f"{self._url}{CRDS}/{_name(item)}", timeout=30)

    def _is_gone(self, item: Object) -> bool:
        discovered = any(self._is_discovered(item, version) for version in _versions(item))
        return self._get(f"{CRDS}/{_name(item)}").status_code == 404 and not discovered

    def _post(self, crd: Object) -> None:
        answer = self._session.post(self._url + CRDS, json=crd, timeout=30)
        assert answer.ok, f"the API server refuses the CRD {_name(crd)}: {answer.text}"

    def _is_served(self, crd: Object) -> bool:
        item = self._get(f"{CRDS}/{_name(crd)}").json()
        group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
        return _is_established(item) and all(
            self._is_discovered(crd, version) and self._get(f"/apis/{group}/{version}/{plural}?limit=1").ok
            for version in _versions(crd)
        )

    def _is_discovered(self, crd: Object, version: str) -> bool:
        answer = self._get(f"/apis/{crd['spec']['group']}/{version}")
        found = answer.json()["resources"] if answer.ok else ()
        return crd["spec"]["names"]["plural"] in [one["name"] for one in found]

    def _get(self, path: str) -> requests.Response:
        return self._session.get(self._url + path, timeout=30)

    def _until(self, done: Callable[[Object], bool], crd: Object, wanted: str) -> None:
        end = time.monotonic() + SERVED_SECONDS
        while not done(crd):
            assert time.monotonic() < end, f"the CRD {_name(crd)} is not {wanted} in {SERVED_SECONDS:.0f} s"
            time.sleep(STEP_SECONDS)


def _name(crd: Object) -> str:
    return str(crd["metadata"]["name"])


def _versions(crd: Object) -> list[str]:
    return [version["name"] for version in crd["spec"]["versions"] if version["served"]]


def _sent(crd: Object) -> str:
    return json.dumps(crd, sort_keys=True)


def _is_established(crd: Object) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return ("Established", "True") in [(condition["type"], condition["status"]) for condition in conditions]
