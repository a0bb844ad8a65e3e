"""
The client of API servers.

aiohttp makes two TLS contexts when it is imported, each with all CAs of the system, in 0.1 s and 2 MB. Nobody
here uses them, since every session has a context of its own (see `tls`). So it is imported here first, with
no CA to be found: its own contexts trust no server.
"""

import os
from importlib import import_module
from typing import Final

_CA_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL looks for the CAs of the system."""


def _import_aiohttp() -> None:
    given = {name: os.environ.get(name) for name in _CA_VARIABLES}
    os.environ.update(dict.fromkeys(given, os.devnull))
    try:
        import_module("aiohttp")
    finally:
        for name, value in given.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


_import_aiohttp()
