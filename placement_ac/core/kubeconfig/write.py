"""
Write the kubeconfig of provisioned credentials.

Pure: the same bytes for the same arguments.
"""

import base64

import orjson

from placement_ac.core.kubeconfig.expiry import authorities_lifetime
from placement_ac.core.kubeconfig.read import strict_problem
from placement_ac.core.kubeconfig.refusals import Refusal
from placement_ac.core.kubeconfig.source import Unusable


def write_kubeconfig(server: str, authority: str | bytes, token: str, cluster: str) -> bytes | Unusable:
    """Return a kubeconfig for which `strict_problem` has none. It is JSON, which is YAML.

    `authority` is PEM; whatever is not a certificate in it is left out. Empty: those that Kueue's container
    trusts. `cluster` names its one cluster, user and context.
    """
    pem = authority.decode("ascii", "ignore") if isinstance(authority, bytes) else authority
    trusted, _ = authorities_lifetime(pem)
    if authority and not trusted:
        return Unusable(Refusal.AUTHORITY.value)
    data = {"certificate-authority-data": base64.b64encode(trusted.encode()).decode()} if trusted else {}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": cluster, "cluster": {"server": server} | data}],
        "users": [{"name": cluster, "user": {"token": token}}],
        "contexts": [{"name": cluster, "context": {"cluster": cluster, "user": cluster}}],
        "current-context": cluster,
    }
    try:
        text = orjson.dumps(content)
    except orjson.JSONEncodeError:
        return Unusable(Refusal.NOT_YAML.value)
    problem = strict_problem(text)
    return Unusable(problem) if problem else text
