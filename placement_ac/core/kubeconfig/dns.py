"""DNS names (RFC 1123): hosts, and the names of most Kubernetes objects. Pure."""

import re
from typing import Final

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
MAX: Final = 253
"""Characters of a name."""


def is_dns_name(name: str, most: int = MAX) -> bool:
    """Whether `name` is a DNS-1123 subdomain of at most `most` characters; an IPv4 address is one, too."""
    return len(name) <= most and _NAME.fullmatch(name) is not None
