"""How our kubeconfig is written."""

import json

import pytest
import yaml

from placement_ac.core.kubeconfig.read import read_kubeconfig, strict_problem
from placement_ac.core.kubeconfig.refusals import NotSupportedHere, Refusal, StricterRule
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable
from placement_ac.core.kubeconfig.write import write_kubeconfig
from tests.support.builders import encoded
from tests.support.kubeconfigs import AUTHORITY, KEY, SECRET, SERVER, second_version


def test_ours_is_taken_by_every_rule_and_always_the_same() -> None:
    made = write_kubeconfig(SERVER, AUTHORITY.encode(), SECRET, "worker1")
    assert isinstance(made, bytes)
    assert strict_problem(made) == ""
    assert (
        json.loads(made)
        == yaml.safe_load(made)
        == {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "worker1",
                    "cluster": {"server": SERVER, "certificate-authority-data": encoded(AUTHORITY)},
                }
            ],
            "users": [{"name": "worker1", "user": {"token": SECRET}}],
            "contexts": [{"name": "worker1", "context": {"cluster": "worker1", "user": "worker1"}}],
            "current-context": "worker1",
        }
    )
    assert made == write_kubeconfig(SERVER, f"# theirs\n{AUTHORITY}{KEY}", SECRET, "worker1")


def test_ours_may_have_no_authority_of_its_own() -> None:
    made = write_kubeconfig(SERVER, "", SECRET, "worker1")
    assert isinstance(made, bytes)
    assert read_kubeconfig(made) == ClusterAccess(SERVER, SECRET)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(("", AUTHORITY, SECRET), Refusal.NO_SERVER, id="no server"),
        pytest.param(("http://worker1", AUTHORITY, SECRET), StricterRule.HTTPS, id="http"),
        pytest.param(
            (f"https://{SECRET}@worker1", AUTHORITY, SECRET), NotSupportedHere.USER_INFO, id="user info"
        ),
        pytest.param(("https://\ud800", AUTHORITY, SECRET), Refusal.NOT_YAML, id="no text"),
        pytest.param((SERVER, KEY, SECRET), Refusal.AUTHORITY, id="no authority"),
        pytest.param((SERVER, b"\xff\x00", SECRET), Refusal.AUTHORITY, id="no PEM"),
        pytest.param((SERVER, second_version(AUTHORITY), SECRET), Refusal.AUTHORITY, id="version 2"),
        pytest.param((SERVER, AUTHORITY, ""), NotSupportedHere.NOBODY, id="no token"),
        pytest.param((SERVER, AUTHORITY, f"{SECRET}\n"), Refusal.TOKEN, id="a line break"),
    ],
)
def test_arguments_that_give_no_kubeconfig(arguments: tuple[str, str | bytes, str], why: str) -> None:
    assert write_kubeconfig(*arguments, "worker1") == Unusable(why)
