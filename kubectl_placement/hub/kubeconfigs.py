"""
Where the kubeconfig of a Secret leads, to tell which Secrets lead to the same worker.

Pure.
"""

import base64
from itertools import chain

from kubectl_placement.hub.dump import Object
from placement_ac.core.api.constants import KUBECONFIG_KEY
from placement_ac.core.api.fields import get_str
from placement_ac.core.kubeconfig.read import read_kubeconfig
from placement_ac.core.kubeconfig.source import ClusterAccess


def server_and_user(secret: Object | None) -> tuple[str, ...] | None:
    """Return a value that two kubeconfigs with the same server and user share; it holds secrets.

    None: it cannot be read, or only Kueue can use it, and more may tell it apart (a file of its Pod).
    """
    if (access := _access(secret)) is None:
        return None
    user = (access.token, access.certificate, *chain.from_iterable(access.impersonation))
    return access.server, access.server_name, access.proxy, *user


def endpoint_of(secret: Object | None) -> tuple[str, ...] | None:
    """Return a value that two kubeconfigs with the same server, TLS name, proxy and CA share; None as above.

    Many clusters may stand behind one such endpoint (Teleport); only the client's certificate differs.
    """
    if (access := _access(secret)) is None:
        return None
    return (access.server, access.server_name, access.proxy, access.authority)


def _access(secret: Object | None) -> ClusterAccess | None:
    try:
        content = base64.b64decode(get_str(secret, "data", KUBECONFIG_KEY), validate=True)
    except ValueError:
        return None
    access = read_kubeconfig(content)
    return access if isinstance(access, ClusterAccess) else None
