"""What every test may use: a hub, an admin on it, and the controller."""

import signal
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import pytest

from placement_ac.lab.hub import Hub
from placement_ac.observability import logs
from tests.kind import environment
from tests.support import envtest
from tests.support.driver import Controllers, Driver
from tests.support.envtest import HubMaker
from tests.support.shared import published_crds

pytest_plugins = ["tests.support.stage"]

sys.setrecursionlimit(2500)  # celpy does so when it is first used, and hypothesis warns of the change

SHARED_CRDS = Path(__file__).resolve().parents[2] / "shared" / "crds"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("placement-ac")
    group.addoption(
        "--envtest",
        action="store_true",
        help=f"test on a real API server, from the folder ${envtest.VARIABLE}",
    )
    group.addoption("--crds", default=str(SHARED_CRDS), help="with --envtest: the folder of the CRDs on it")
    group.addoption("--kind", action="store_true", help="collect tests/kind, for what setup-env.sh has made")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("kind") and (missing := environment.missing()):
        raise pytest.UsageError(missing)
    if not config.getoption("envtest"):
        return
    try:
        envtest.assets()
        envtest.crds_in(Path(config.getoption("crds")))
    except envtest.Missing as absent:
        raise pytest.UsageError(str(absent)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the servers are stopped then, too


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    here = Path(__file__).parent
    return True if collection_path == here / "kind" and not config.getoption("kind") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a real API server leave out what has nothing to do with it, or asks too much of it."""
    if not config.getoption("envtest"):
        return
    for item in items:
        if "a_hub" not in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip("has embedded hubs of its own, or none"))
        for mark in item.iter_markers("embedded"):
            item.add_marker(pytest.mark.skip(f"needs the embedded hub: {mark.args[0]}"))


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logs.configure("text", "error")


@pytest.fixture(autouse=True)
def _can_be_stopped() -> Iterator[None]:
    """A command that runs in this process takes Ctrl-C for itself, and leaves it so."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture(scope="session")
def real_hub(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[envtest.RealHub | None]:
    """With `--envtest` a real API server, one for all tests."""
    if not pytestconfig.getoption("envtest"):
        yield None
        return
    crds = envtest.crds_in(Path(pytestconfig.getoption("crds")))
    with envtest.RealHub(envtest.assets(), tmp_path_factory.mktemp("envtest"), crds) as hub:
        yield hub


@pytest.fixture(scope="session")
def a_hub(real_hub: envtest.RealHub | None) -> HubMaker:
    """Makes a `Hub` with these options; with `--envtest` it is the real one, cleared."""

    def make(**options: Any) -> AbstractContextManager[Hub]:
        if real_hub is None:
            return Hub(**options)
        real_hub.wipe()
        return nullcontext(cast("Hub", real_hub))

    return make


@pytest.fixture
def hub(a_hub: HubMaker) -> Iterator[Hub]:
    """A hub that serves the published CRDs, and so validates against them whatever is written."""
    with a_hub(crds=published_crds()) as hub:
        yield hub


@pytest.fixture
def admin(hub: Hub) -> Iterator[Driver]:
    with Driver(hub) as driver:
        driver.namespace("kueue-system")
        yield driver


@pytest.fixture
def controllers(hub: Hub, tmp_path: Path) -> Iterator[Controllers]:
    """Starts controllers on the hub: `with controllers(): …`, or `controllers.start()` for the whole test."""
    path = tmp_path / "kubeconfig"
    hub.write_kubeconfig(path)
    with Controllers(path) as controllers:
        yield controllers
