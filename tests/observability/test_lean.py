"""What is spared when a command is imported: it changes nothing for what comes after."""

import gc
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from placement_ac.observability.lean import loaded
from tests.core.kubeconfig.test_access import AUTHORITY

NAME = "imported_by_test_lean"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that makes a context, as aiohttp does, and asks whether garbage is collected."""
    (tmp_path / f"{NAME}.py").write_text(
        "import gc, ssl\nCONTEXT = ssl.create_default_context()\nCOLLECTS = gc.isenabled()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield NAME
    sys.modules.pop(NAME, None)


def trusted(context: ssl.SSLContext) -> int:
    return context.cert_store_stats()["x509"]


def test_a_context_that_is_made_meanwhile_trusts_nobody(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text(AUTHORITY)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    assert trusted(loaded(module).CONTEXT) == 0
    assert trusted(ssl.create_default_context()) == 1
    assert "SSL_CERT_DIR" not in os.environ


def test_it_is_imported_without_the_garbage_collector(module: str) -> None:
    assert not loaded(module).COLLECTS
    assert gc.isenabled()


def test_what_is_imported_is_not_frozen_for_whoever_asked(module: str) -> None:
    frozen = gc.get_freeze_count()
    assert loaded(module) is loaded(module)
    assert gc.get_freeze_count() == frozen


def test_a_module_that_fails_leaves_all_as_it_was() -> None:
    before = dict(os.environ)
    with pytest.raises(ModuleNotFoundError):
        loaded("placement_ac.cli.no_such_command")
    gc.unfreeze()
    assert gc.isenabled()
    assert dict(os.environ) == before
