"""The policy for the controller's account, evaluated as CEL; tests/real asks an API server the same."""

import re
from functools import cache
from typing import Any

import pytest
import yaml

from kubectl_placement.scheduling.cel_environment import Program
from placement_ac.core.worker_setup import manifests
from placement_lab.structural_schema.rules import environment
from tests.support.admission_policy import ACCEPTED, TOKEN, WRITES, Write, all_rights, policy
from tests.support.installation import CONFIG, grants, rendered

SERVER = environment("object", "oldObject", "request", "variables")


@cache
def _program(text: str) -> Program:
    return SERVER.compile(text)


def answer(write: Write, user: str = TOKEN) -> str:
    """Return the message with which the policy refuses a write, or ACCEPTED."""
    shown = write.after or write.before or {}
    variables: dict[str, Any] = {}
    names: dict[str, Any] = {
        "object": write.after,
        "oldObject": write.before,
        "request": {
            "operation": "DELETE" if write.after is None else "UPDATE" if write.before else "CREATE",
            "namespace": shown["metadata"]["namespace"],
            "resource": {"group": write.kind.group, "resource": write.kind.plural},
            "userInfo": {"username": user},
        },
        "variables": variables,
    }
    spec = policy()
    if not all(_program(one["expression"]).is_true(names) for one in spec["matchConditions"]):
        return ACCEPTED
    for one in spec["variables"]:
        # One that fails is missing: the server evaluates only those that are used.
        if not _program(one["expression"]).error(names):
            variables[one["name"]] = _program(one["expression"]).evaluate(names).plain_value()
    for one in spec["validations"]:
        if not _program(one["expression"]).is_true(names):
            return str(one["message"])
    return ACCEPTED


@pytest.mark.parametrize("name", WRITES)
def test_the_policy_lets_the_account_write_what_the_controller_writes_alone(name: str) -> None:
    write, wanted = WRITES[name]
    got = answer(write)
    assert got.startswith(wanted) if wanted else got == ACCEPTED, got


@pytest.mark.parametrize("user", ["admin", "system:serviceaccount:open-cluster-management:placement-ac-2"])
def test_nobody_else_is_affected(user: str) -> None:
    assert {answer(write, user) for write, _ in WRITES.values()} == {ACCEPTED}


def _literal(name: str) -> Any:
    """Return the value of a variable that is one."""
    [text] = [one["expression"] for one in policy()["variables"] if one["name"] == name]
    return yaml.safe_load(text)


def test_the_rights_are_those_that_the_controller_may_grant() -> None:
    """As every job kind and every gate needs them: neither list can change without the other."""
    granted: dict[str, dict[str, set[str]]] = {}
    for rule in all_rights():
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                granted.setdefault(group, {}).setdefault(resource, set()).update(rule["verbs"])
    listed = {
        group: {resource: set(verbs) for resource, verbs in resources.items()}
        for group, resources in _literal("rights").items()
    }
    assert listed == granted


def test_the_kinds_are_those_that_worker_setup_makes() -> None:
    made = {name: [kind.group, kind.plural] for name, kind in manifests.SETUP_KINDS.items()}
    assert _literal("kinds") == made


def test_it_holds_for_each_object_that_the_components_let_the_account_create() -> None:
    """Beside those that are of no use for more: a score, an event, a Lease, and those of Kueue on the hub."""
    harmless = {
        "addonplacementscores", "configmaps", "events", "leases", "multikueueclusters", "multikueueconfigs",
    }  # fmt: skip
    overlays = [f"overlays/{path.name}" for path in (CONFIG / "overlays").iterdir()]
    created = {
        resource
        for overlay in overlays
        for _, _, rule in grants(rendered(overlay))
        if "create" in rule.verbs
        for resource in rule.resources
    }
    matched = {
        resource for one in policy()["matchConstraints"]["resourceRules"] for resource in one["resources"]
    }
    assert created - harmless == matched


def test_each_message_is_of_one_validation_and_met() -> None:
    messages = [one["message"] for one in policy()["validations"]]
    assert len({*messages}) == len(messages)
    met = {wanted for _, wanted in WRITES.values()} - {ACCEPTED}
    assert [message for message in messages if not re.match("|".join(map(re.escape, met)), message)] == []
