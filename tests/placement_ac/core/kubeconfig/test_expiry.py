"""When the credentials in a kubeconfig end."""

from datetime import UTC, datetime

import pytest

from placement_ac.core.kubeconfig import expiry
from placement_ac.core.kubeconfig.source import ClusterAccess
from tests.support.builders import encoded
from tests.support.kubeconfigs import (
    AUTHORITY,
    CERTIFICATE,
    DAY,
    FAR,
    PAIR,
    TOKEN,
    Raw,
    issued,
    jwt,
    kubeconfig,
    read,
)


@pytest.mark.parametrize(
    ("user", "authority", "end"),
    [
        pytest.param(TOKEN, None, (None, "", None), id="a token that does not say"),
        pytest.param(
            {"token": jwt(exp=DAY.timestamp(), iat=0, nbf=60)},
            None,
            (DAY, expiry.TOKEN, datetime(1970, 1, 1, 0, 1, tzinfo=UTC)),
            id="nbf",
        ),
        pytest.param(
            {"token": jwt(exp=1.5, iat=0)},
            None,
            (
                datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
                expiry.TOKEN,
                datetime(1970, 1, 1, tzinfo=UTC),
            ),
            id="iat",
        ),
        pytest.param({"token": jwt(iat=0)}, None, (None, "", None), id="a token for ever"),
        pytest.param({"token": jwt(exp="tomorrow")}, None, (None, "", None), id="no number"),
        pytest.param({"token": jwt(exp=True)}, None, (None, "", None), id="no number either"),
        pytest.param({"token": jwt(exp=1e300)}, None, (None, "", None), id="beyond the calendar"),
        pytest.param({"token": "a.b!.c"}, None, (None, "", None), id="three words"),
        pytest.param({"token": f"a.{encoded('[1]')}.c"}, None, (None, "", None), id="no map"),
        pytest.param(
            PAIR | {"token": jwt(exp=DAY.timestamp())}, None, (DAY, expiry.TOKEN, None), id="the first of two"
        ),
        pytest.param(
            {"token": jwt(exp=DAY.timestamp())},
            AUTHORITY,
            (DAY, expiry.TOKEN, None),
            id="before its authority",
        ),
        pytest.param(
            TOKEN, AUTHORITY, (FAR, expiry.AUTHORITY, datetime(2000, 1, 1, tzinfo=UTC)), id="authority"
        ),
        pytest.param(
            TOKEN,
            f"{CERTIFICATE}{issued(end=datetime(2031, 1, 1, tzinfo=UTC))[0]}",
            (datetime(2031, 1, 1, tzinfo=UTC), expiry.AUTHORITY, DAY),
            id="the last of several authorities",
        ),
    ],
)
def test_when_it_ends(user: Raw, authority: str | None, end: tuple[object, ...]) -> None:
    cluster = {"certificate-authority-data": encoded(authority)} if authority else {}
    access = read(kubeconfig(user, cluster))
    assert isinstance(access, ClusterAccess)
    assert (access.expires, access.expires_what, access.issued) == end
