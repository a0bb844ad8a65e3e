"""
Reviews, which are answered and not stored: SelfSubjectReview, access and rules reviews, TokenReview.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placement_lab.hub.errors import StatusError, bad_request
from placement_lab.hub.request_attributes import attributes_of_review
from placement_lab.hub.service_accounts import AUDIENCE, InvalidToken
from placement_lab.structural_schema.validation import StatusCause

if TYPE_CHECKING:
    from collections.abc import Callable

    from placement_lab.hub.access_control import AccessControl
    from placement_lab.hub.users import UserInfo

Body = dict[str, Any]

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


def answer(access: AccessControl, user: UserInfo, plural: str, body: Body) -> Body:
    """Return the review with its status; raises 400 or 422 for an invalid spec."""
    spec = body.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    return body | {"metadata": {"creationTimestamp": None}, "status": ANSWERS[plural](access, user, spec)}


def _user_info(_: AccessControl, user: UserInfo, __: Body) -> Body:
    return {"userInfo": user.wire()}


def _access(access: AccessControl, user: UserInfo, spec: Body) -> Body:
    action = attributes_of_review(spec)
    if action is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = StatusCause("FieldValueInvalid", f'Invalid value: "null": {why}', "spec.resourceAttributes")
        message = f'SelfSubjectAccessReview.{AUTHORIZATION} "" is invalid: {cause.field}: {cause.message}'
        raise StatusError(422, "Invalid", message, causes=[cause])
    verdict = access.rbac.authorize(user, action)
    return {"allowed": verdict.allowed} | ({"reason": verdict.reason} if verdict.reason else {})


def _rules(access: AccessControl, user: UserInfo, spec: Body) -> Body:
    namespace = spec.get("namespace")
    if not namespace or not isinstance(namespace, str):
        raise bad_request("no namespace on request")
    held = access.rbac.rules_for(user, namespace)
    rules = [rule.wire() for _, rule in held.rules]
    status: Body = {
        "resourceRules": [rule for rule in rules if "resources" in rule],
        "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
        "incomplete": False,  # a real server says so although a role is missing: evaluationError has it
    }
    return status | ({"evaluationError": ", ".join(held.errors)} if held.errors else {})


def _token_user(access: AccessControl, _: UserInfo, spec: Body) -> Body:
    token = spec.get("token")
    if not token or not isinstance(token, str):
        raise bad_request("token is required for TokenReview in authentication")
    try:
        user = access.authenticate_token(token)
    except InvalidToken as refused:
        return {"user": {}, "error": f"[invalid bearer token, {refused}]"}
    return {"authenticated": True, "user": user.wire(), "audiences": [AUDIENCE]}


ANSWERS: dict[str, Callable[[AccessControl, UserInfo, Body], Body]] = {
    "selfsubjectreviews": _user_info,
    "selfsubjectaccessreviews": _access,
    "selfsubjectrulesreviews": _rules,
    "tokenreviews": _token_user,
}
