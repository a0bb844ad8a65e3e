"""A reverse proxy in front of any API server, with the journal, the faults and the users of `Hub`."""

from tests.support.proxy.server import Proxy, Upstream

__all__ = ["Proxy", "Upstream"]
