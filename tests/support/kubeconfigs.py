"""Kubeconfigs as data, and what is in them: certificates, keys, tokens."""

import json
from datetime import UTC, datetime
from typing import Any

import trustme
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import serialization as ser

from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess, Unusable
from tests.support.builders import encoded

Raw = dict[str, Any]


def one_context(cluster: Raw, user: Raw, name: str = "w", **top: Any) -> Raw:
    """Return a kubeconfig with one context; `name` is its name, the cluster's and the user's."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    } | top


SECRET = "SeCrEt-42"
SERVER = "https://worker1.example.com:6443"
DAY = datetime(2030, 1, 1, tzinfo=UTC)
CA = trustme.CA()


def issued(begin: datetime = DAY, end: datetime = datetime(2030, 2, 1, tzinfo=UTC)) -> tuple[str, str]:
    """A certificate that is good from then to then, and its key: PEM."""
    leaf = CA.issue_cert("client@example.com", not_before=begin, not_after=end)
    return leaf.cert_chain_pems[0].bytes().decode(), leaf.private_key_pem.bytes().decode()


def jwt(**claims: object) -> str:
    return ".".join(encoded(json.dumps(part)).rstrip("=") for part in ({}, claims, {"signature": SECRET}))


AUTHORITY = CA.cert_pem.bytes().decode()
CERTIFICATE, KEY = issued()
TOKEN = {"token": SECRET}
PAIR = {"client-certificate-data": encoded(CERTIFICATE), "client-key-data": encoded(KEY)}
NO_PEM = encoded("-----BEGIN X-----\nabc\n-----END X-----\n")
FAR = datetime(3000, 1, 1, tzinfo=UTC)
"""When an authority of trustme ends."""


def kubeconfig(user: Raw | None = None, cluster: Raw | None = None, **top: Any) -> Raw:
    """A kubeconfig with a token; the arguments replace parts of it."""
    given = {"server": SERVER} | (cluster or {})
    changes = {name.replace("_", "-"): value for name, value in top.items()}
    return one_context(given, dict(TOKEN) if user is None else user, **changes)


def read(config: object) -> ClusterAccess | Unusable:
    """A kubeconfig as it is read: the same from YAML and from JSON."""
    answer = read_kubeconfig(yaml.safe_dump(config).encode())
    assert read_kubeconfig(json.dumps(config).encode()) == answer
    return answer


def others(section: str, name: str, content: Raw) -> list[Raw]:
    """The entries of a kubeconfig, and one that the current context does not use."""
    return [*kubeconfig()[section], {"name": "other", name: content}]


def second_version(certificate: str) -> str:
    """It, as a certificate of X.509 version 2, for which cryptography has an error of no known kind."""
    der = x509.load_pem_x509_certificate(certificate.encode()).public_bytes(ser.Encoding.DER)
    assert der.count(b"\xa0\x03\x02\x01\x02") == 1
    second = der.replace(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x01")
    return f"-----BEGIN CERTIFICATE-----\n{encoded(second)}\n-----END CERTIFICATE-----\n"
