"""Which servers our TLS trusts: as Go does, on every Python."""

import ssl

import pytest

from placement_ac.core.kubeconfig.source import ClusterAccess
from placement_ac.kube.tls import ssl_context
from tests.support.authorities import ADDRESS, authorities

AUTHORITIES = authorities()


@pytest.fixture(params=[False, True], ids=["this Python", "as Python 3.13"])
def strict(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.13 and newer begin with the strict rules of RFC 5280."""
    create = ssl.create_default_context

    def create_strict(*args: object, **options: object) -> ssl.SSLContext:
        context = create(*args, **options)  # type: ignore[arg-type]  # as it was called
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    if request.param:
        monkeypatch.setattr(ssl, "create_default_context", create_strict)


def is_trusted(server: ssl.SSLContext, client: ssl.SSLContext) -> bool:
    """Return whether a handshake in memory succeeds."""
    one, other = ssl.MemoryBIO(), ssl.MemoryBIO()
    parties = [
        client.wrap_bio(one, other, server_hostname=ADDRESS),
        server.wrap_bio(other, one, server_side=True),
    ]
    for _ in range(6):
        for party in parties:
            try:
                party.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return True


@pytest.mark.usefixtures("strict")
@pytest.mark.parametrize("name", AUTHORITIES)
def test_authorities_are_taken_as_by_go(name: str) -> None:
    served, by_go = AUTHORITIES[name]
    access = ClusterAccess(f"https://{ADDRESS}", authority=served.authority.decode())
    assert is_trusted(served.context(), ssl_context(access)) is by_go
