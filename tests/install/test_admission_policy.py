"""The policy for the controller's account, evaluated by celpy; tests/real asks an API server the same."""

import re
from functools import cache
from typing import Any

import celpy
import pytest
import yaml
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from placement_ac.core.worker_setup import manifests
from tests.support.admission_policy import ACCEPTED, TOKEN, WRITES, Write, all_rights, policy
from tests.support.installation import CONFIG, grants, rendered


@cache
def _program(text: str) -> celpy.Runner:
    environment = celpy.Environment()
    return environment.program(environment.compile(text))


def answer(write: Write, user: str = TOKEN) -> str:
    """Return the message with which the policy refuses a write, or ACCEPTED."""
    shown = write.after or write.before or {}
    names: dict[str, Any] = {
        "object": json_to_cel(write.after),
        "oldObject": json_to_cel(write.before),
        "request": json_to_cel(
            {
                "operation": "DELETE" if write.after is None else "UPDATE" if write.before else "CREATE",
                "namespace": shown["metadata"]["namespace"],
                "resource": {"group": write.kind.group, "resource": write.kind.plural},
                "userInfo": {"username": user},
            }
        ),
    }
    spec = policy()
    if not all(_program(one["expression"]).evaluate(names) for one in spec["matchConditions"]):
        return ACCEPTED
    variables = celpy.celtypes.MapType()
    for one in spec["variables"]:
        try:
            value = _program(one["expression"]).evaluate(names | {"variables": variables})
        except CELEvalError:
            continue  # the server evaluates only those that are used
        variables[celpy.celtypes.StringType(one["name"])] = value
    for one in spec["validations"]:
        if not _program(one["expression"]).evaluate(names | {"variables": variables}):
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
