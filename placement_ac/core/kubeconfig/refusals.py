"""
Why a kubeconfig is refused: what to change, and the reason.

Each is reported after the name of its Secret: `in Secret kueue-system/worker1, replace tokenFile …`.
None quotes the kubeconfig.
"""

from enum import StrEnum


class Refusal(StrEnum):
    """Kueue does not take such a kubeconfig, or cannot connect with it."""

    TOO_LARGE = "put a kubeconfig: this is larger than 256 KiB"
    TOO_MANY = "put a kubeconfig: this has more than 10000 fields and lines"
    NOT_YAML = "put a kubeconfig: this is not YAML"
    TOO_DEEP = "put a kubeconfig: this is nested too deeply for one"
    ALIASES = "write the YAML without aliases: they expand to too much, or to themselves"
    NO_MAP = "put a kubeconfig: this is not a map"
    SHAPE = "fix {field}: {why}"
    NOT_CONFIG = "set kind to Config and apiVersion to v1: they are something else"
    SAME_NAME = "rename or delete one of them: two clusters, users or contexts have the same name"
    NOT_BASE64 = "encode {field} in base64, on one line: it is not base64"
    TOKEN_FILE = "replace tokenFile by token: only a token is allowed"  # noqa: S105  no secret
    INSECURE = "replace insecure-skip-tls-verify by certificate-authority-data: the server must be verified"
    AUTHORITY_FILE = "replace certificate-authority by certificate-authority-data: no file is allowed"
    NO_SERVER = "set the server of every cluster: one of them has none"
    NO_CONTEXT = "set current-context to one of its contexts: it names none of them"
    NO_CLUSTER = "set the cluster of the current context to one of its clusters: it names none of them"
    BASIC = "replace username and password by a token or a client certificate: basic auth is not allowed"
    EXEC = "replace exec by token: no program is run for a Secret"
    AUTH_PROVIDER = "replace auth-provider by token: no program is run for a Secret"
    AS_NOBODY = "set as, or remove as-uid, as-groups and as-user-extra: they mean nothing without it"
    IMPERSONATION = "fix as, as-uid, as-groups and as-user-extra: one has characters that no HTTP header has"
    FILE_AND_DATA = "keep the data: a client certificate or key is given both in a file and as data"
    HALF_A_PAIR = "give a client certificate together with its key: one of them is missing"
    NO_PAIR = "give a client certificate with its key: one of them is invalid, or they do not match"
    NO_CERTIFICATE = "put a certificate into client-certificate-data: it has none"
    NO_KEY = "put a private key without a password into client-key-data: it has none"
    OTHER_KEY = "give the key of the client certificate: client-key-data is another one"
    TOKEN = "fix token: it has characters that no token has, maybe a line break"  # noqa: S105  no secret
    AUTHORITY = "put a certificate into certificate-authority-data: it has none"
    ADDRESS = "set server to an http or https URL with a host: it is no such URL"
    HOST = "set server to a URL whose host is an IP address or a DNS name: it is neither"
    IPV6 = "add a port to the IPv6 address of server: Kueue takes no such address without one"
    PROXY = "set proxy-url to an http, https or socks5 URL: it is no such URL"


class NotSupportedHere(StrEnum):
    """Kueue takes such a kubeconfig and this program does not: it cannot ask that worker itself."""

    USER_INFO = "remove the user name from server: a stricter Kueue will refuse it"
    FILES = (
        "give client-certificate-data and client-key-data:"
        " a client certificate or key in a file exists in Kueue's container only"
    )
    NOBODY = "give a token or a client certificate: there is neither"


class StricterRule(StrEnum):
    """The rules proposed for Kueue (its pull request 14738) refuse this, beside all of the above."""

    HTTPS = "set server to an https URL: it is no such URL"


class KubeconfigRefused(Exception):
    """A kubeconfig that cannot be used. Its text is one of the above, for a person."""
