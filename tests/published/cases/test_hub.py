"""The case of the embedded hub: kubectl with a `kind: List`, and with kinds that it does not serve."""

import shutil

import pytest

from tests.published.cases.scripts import run_case

pytestmark = [
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not on PATH"),
]


def test_a_list_is_applied_and_an_unserved_kind_is_named() -> None:
    output = run_case("19").splitlines()
    unserved = "a kind that is not served (a real server: no matches for kind)"
    assert [line.replace("Error from server (AlreadyExists): ", "") for line in output] == [
        "apply -f list.yaml: configmap/notes created",
        'create -f list.yaml: error when creating "list.yaml": configmaps "notes" already exists',
        "apply --server-side: configmap/notes serverside-applied",
        "get -o yaml | apply -f: managedclusterset.cluster.open-cluster-management.io/gpu configured",
        # As of kube-apiserver 1.36.2: what was applied last had a resourceVersion, so kubectl takes it away.
        (
            'apply --validate=false (works): The managedclustersets "gpu" is invalid: '
            "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
        ),
        f"{unserved}: ensure CRDs are installed first",  # the last line of kubectl's "no matches for kind"
        "requests that were not found:",
    ]
