"""
Who may ask the server of `placement-ac ui`: only the page at the address that the command printed.

Pure. A request must have the secret of the session in its path: a web site, or another user of this machine,
does not know it. The headers of the browser are checked as well: Host (another name may resolve to
127.0.0.1), Origin, and Sec-Fetch-Site; the file that `--open` gives to a browser may lead to the page.
"""

import secrets
from collections.abc import Mapping
from typing import Final

ADDRESS: Final = "127.0.0.1"
_OWN_SITE: Final = ("", "none", "same-origin")
"""Values of Sec-Fetch-Site: `none` if the user has typed the address; old browsers do not send the header."""
_OPENS: Final = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
"""The headers of a link that is followed, in a tab of its own."""
_OPEN_IT: Final = "open the address that placement-ac ui has printed"


class Access:
    """The rules of one session."""

    def __init__(self) -> None:
        self._secret = secrets.token_urlsafe(24)

    @property
    def root(self) -> str:
        """The path of the page."""
        return f"/{self._secret}/"

    def refusal(self, headers: Mapping[str, str], path: str, port: int) -> str:
        """Return why a request is refused; "" if it is answered."""
        host = headers.get("Host", "")
        if host not in (f"{ADDRESS}:{port}", f"localhost:{port}"):
            return f"{_OPEN_IT}: the Host header names another host"
        if headers.get("Origin", f"http://{host}") != f"http://{host}":
            return f"{_OPEN_IT}: the request is from the page of another site"
        opens = path == self.root and all(headers.get(name) == value for name, value in _OPENS.items())
        if headers.get("Sec-Fetch-Site", "") not in _OWN_SITE and not opens:
            return f"{_OPEN_IT}, in a tab of its own: the request is from the page of another site"
        if not secrets.compare_digest(path[: len(self.root)].encode(), self.root.encode()):
            return f"{_OPEN_IT}: this one lacks its secret"
        return ""
