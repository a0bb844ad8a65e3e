"""
What can go wrong between this program and an API server, by what is to be done about it.

No error carries a request header, a token or the content of a Secret.
"""


class PlacementAcError(Exception):
    """The root of every error that this program raises on purpose."""


class ApiError(PlacementAcError):
    """The API server answered with an error, or did not answer.

    `status` is the HTTP code (0: no answer), `reason` the Status object's, `retry_after`
    the seconds that the server asked for (None: it did not say).
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


class Garbled(Unavailable):
    """What came is not of the shape that was asked for: nothing that came with it is to be trusted."""


class Conflict(ApiError):
    """409: the object is not what we thought it was; look again, then decide again."""


class NotFound(ApiError):
    """404: the object, its namespace or its kind is not there."""


class Refused(ApiError):
    """Any other 4xx: the same request will be refused again; a person has to change something."""


class NotLeading(ApiError):
    """The write was not sent: this process does not lead. Whoever does sees what there is to be done."""


class WorkloadTrouble(ApiError):
    """Some Workload could not be written to; all else has been done."""


class Gone(ApiError):
    """410: a list or watch continues from a version that the server has forgotten."""


class LoginFailed(PlacementAcError):
    """No usable kubeconfig and not inside a cluster either."""
