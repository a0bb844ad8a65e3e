"""
Errors between this program and an API server, by what the program does about them.

No error carries a request header, a token or the content of a Secret.
"""

import traceback


class PlacementAcError(Exception):
    """The root of every error that this program raises on purpose."""


class UnusableArgument(PlacementAcError):
    """A value that the caller has given cannot be used; the message names it."""


class BadSettings(UnusableArgument):
    """A setting is unknown or has an impossible value; the message names it and says what is possible."""


class ApiError(PlacementAcError):
    """The API server answered with an error, or did not answer.

    `status` is the HTTP code (0: no answer), `reason` the Status object's, `retry_after`
    the seconds that the server asked for (None: not set).
    """

    def __init__(
        self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.retry_after = retry_after


class Unavailable(ApiError):
    """Worth trying again as it is: no connection, a timeout, 429, 5xx, or a 401 while a token is renewed."""


class TlsFailed(Unavailable):
    """No connection: the certificate of the server, or ours, was not accepted."""


class Malformed(Unavailable):
    """The answer is not of the shape that was asked for: none of it is trusted."""


class TooLarge(ApiError):
    """The answer is more than is read; its status is 0, and its message says what is sent."""


class Conflict(ApiError):
    """409: the object has changed; read it and decide again."""


class NotFound(ApiError):
    """404: the object, its namespace or its kind is not there."""


class Refused(ApiError):
    """Any other 4xx: the same request will be refused again; a person has to change something."""


class NotLeading(ApiError):
    """The write was not sent: this process does not lead; the leader will do it."""


class WorkloadWritesFailed(ApiError):
    """Some writes to Workloads failed; all others were tried."""


class Postponed(Unavailable):
    """The write hangs and goes on without us, or was not sent because too many others hang.

    It is decided again when they end, `retry_after` seconds from now at the latest.
    """


class HeldBack(ApiError):
    """The write was not sent: somebody has undone it again and again; `retry_after` says when it is sent."""


class Gone(ApiError):
    """410: a list or watch continues from a version that the server no longer has."""


class LoginFailed(PlacementAcError):
    """No usable kubeconfig and not inside a cluster either."""


def error_place(error: BaseException) -> str:
    """Return the type of an error and where it was raised, without its text, which may quote a token."""
    frames = (f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__))
    return " ".join((type(error).__name__, *frames))
