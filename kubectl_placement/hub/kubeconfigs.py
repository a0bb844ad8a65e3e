"""
The server and the user that a Secret's kubeconfig names, to tell which Secrets lead to the same worker.

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
    try:
        content = base64.b64decode(get_str(secret, "data", KUBECONFIG_KEY), validate=True)
    except ValueError:
        return None
    access = read_kubeconfig(content)
    if not isinstance(access, ClusterAccess):
        return None
    user = (access.token, access.certificate, *chain.from_iterable(access.impersonation))
    return access.server, access.server_name, access.proxy, *user
