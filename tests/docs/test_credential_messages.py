"""Every message about credentials is in the table of docs/credentials.md, with its fix."""

import base64
import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import trustme

from placement_ac.core.api import constants, decode, objects
from placement_ac.core.credentials import provisioned
from placement_ac.core.credentials.cluster_profile import disallowed_server
from placement_ac.core.inputs.provisioning import ProvisioningInputs, ProvisioningObjects, ProvisioningPolicy
from placement_ac.core.kubeconfig.source import Unusable
from tests.support.documents import CREDENTIALS, table

NOW = datetime(2026, 8, 1, tzinfo=UTC)


# -- credentials


def an(kind: constants.Kind, name: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "c", **rest.pop("metadata", {})}
    return {
        "apiVersion": kind.at(kind.versions[0]).api_version,
        "kind": kind.kind,
        "metadata": metadata,
    } | rest


def encoded(token: str) -> dict[str, str]:
    """Return data as OCM reports it."""
    data = {"token": token.encode(), "ca.crt": trustme.CA().cert_pem.bytes()}
    return {key: base64.b64encode(value).decode() for key, value in data.items()}


OURS = {"labels": {constants.LABEL_MANAGED_BY: constants.MANAGED_BY}}
REPORTED = an(constants.SECRET, "placement-ac", data=encoded("token"))
NO_TOKEN = decode.account_token(an(constants.SECRET, "placement-ac"))


def grant(kind: constants.Kind, *conditions: dict[str, Any], **metadata: Any) -> objects.ProvisionedObject:
    status = {"conditions": [{"message": "", **condition} for condition in conditions]}
    return decode.provisioned_object(an(kind, "placement-ac", metadata=OURS | metadata, status=status))


def cluster(**config: str) -> objects.ManagedCluster:
    return decode.managed_cluster(
        an(constants.MANAGED_CLUSTER, "c", spec={"managedClusterClientConfigs": [config]})
    )


IN_FORCE, REFUSED = (
    {"type": constants.DONE[0], "status": status, "reason": "Because"} for status in ("True", "False")
)
WITH_CLUSTER = ProvisioningInputs(
    "c",
    NOW,
    policy=ProvisioningPolicy(provision=True),
    objects=ProvisioningObjects(managed_cluster=cluster(url="https://c")),
)


def having(inputs: ProvisioningInputs, **objects: Any) -> ProvisioningInputs:
    return replace(inputs, objects=replace(inputs.objects, **objects))


WITH_ACCOUNT = having(WITH_CLUSTER, account=grant(constants.ACCOUNT, IN_FORCE))
WITH_TOKEN = having(WITH_ACCOUNT, token=decode.account_token(REPORTED))
USED = replace(WITH_TOKEN, policy=ProvisioningPolicy())
PROFILES = replace(USED, policy=ProvisioningPolicy(form="cluster-profile"))
EXPIRED = replace(
    decode.secret(an(constants.SECRET, "placement-ac-c")), problem="", expires_what="token", expires=NOW
)
PROFILE = decode.cluster_profile(
    an(constants.CLUSTER_PROFILE, "c", status={"accessProviders": [{"name": "ocm"}]})
)
MESSAGES = [
    replace(WITH_CLUSTER, policy=ProvisioningPolicy(provision=True, served=False)),
    having(WITH_CLUSTER, managed_cluster=None),
    having(WITH_CLUSTER, account=grant(constants.ACCOUNT, labels={})),
    WITH_CLUSTER,
    having(WITH_CLUSTER, account=grant(constants.ACCOUNT)),
    having(WITH_CLUSTER, account=grant(constants.ACCOUNT, REFUSED)),
    WITH_ACCOUNT,
    having(WITH_ACCOUNT, token=NO_TOKEN),
    having(WITH_TOKEN, managed_cluster=cluster()),
    having(WITH_TOKEN, managed_cluster=cluster(url="https://c", caBundle="?")),
    having(WITH_TOKEN, managed_cluster=cluster(url="http://c")),
    having(WITH_TOKEN, permission=grant(constants.PERMISSION)),
    USED,
    having(USED, secret=EXPIRED),
    PROFILES,
    having(PROFILES, profile=PROFILE, profile_problem=disallowed_server(PROFILE, {"ocm": (".x",)})),
    having(PROFILES, profile=PROFILE),
]
"""Inputs that result in each of the messages, in their order in the table."""


def test_every_message_about_credentials_has_a_fix() -> None:
    rows = table(CREDENTIALS, "What a message means")
    assert [row for row in rows if not row[1]] == []
    found = [provisioned.provisioned_credentials(seen) for seen in MESSAGES]
    patterns = [re.sub(r"<\w+>", "(.+)", re.escape(row[0])) for row in rows]
    assert [
        (pattern, source)
        for pattern, source in zip(patterns, found, strict=True)
        if not (isinstance(source, Unusable) and re.fullmatch(pattern, source.why))
    ] == []
