"""What is taken from libraries that hold much: all works as before."""

import asyncio
import base64
import gc
from asyncio.sslproto import SSLProtocol
from pathlib import Path

import pytest

from placement_ac.core.api.constants import SECRET
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.lab.hub import Hub
from placement_ac.observability.lean import TLS_BUFFER, hold_little_for_tls
from tests.support.driver import Driver

SECRETS = SECRET.at("v1")
LARGE = 900_000


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SSLProtocol, "max_size", SSLProtocol.max_size)
    hold_little_for_tls()


def held() -> list[int]:
    """Return the sizes of what each encrypted connection of this process reads into."""
    return [len(one.get_buffer(-1)) for one in gc.get_objects() if isinstance(one, SSLProtocol)]


def test_a_large_answer_comes_whole_into_a_small_buffer(
    hub: Hub, admin: Driver, little: None, tmp_path: Path
) -> None:
    path = tmp_path / "kubeconfig"
    hub.write_kubeconfig(path)
    texts = [chr(ord("a") + number) * LARGE for number in range(4)]

    async def ask() -> list[str]:
        async with Client(Login(path)) as client:
            for number, text in enumerate(texts):
                metadata = {"name": f"large-{number}", "namespace": "kueue-system"}
                await client.create(SECRETS, {"metadata": metadata, "stringData": {"text": text}})
            assert TLS_BUFFER in held()
            listing = await client.list(SECRETS, "kueue-system")
            large = [item for item in listing.items if item["metadata"]["name"].startswith("large-")]
            return [item["data"]["text"] for item in large]

    assert asyncio.run(ask()) == [base64.b64encode(text.encode()).decode() for text in texts]


def test_a_python_that_has_no_such_attribute_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(SSLProtocol, "max_size")
    hold_little_for_tls()
    assert not hasattr(SSLProtocol, "max_size")
