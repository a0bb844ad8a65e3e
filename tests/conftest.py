"""Fixtures for every test: a hub, an admin on it, and the controller."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from placement_ac.observability import logs
from placement_lab.hub import Hub
from tests.kind import environment
from tests.support import envtest
from tests.support.crds import all_strict_crds, strict_crds
from tests.support.driver import Controllers, Driver
from tests.support.real_hub import HubMaker, RealHub
from tests.support.stand_in import stand_in

pytest_plugins = ["tests.support.async_tests", "tests.support.stage"]


LONG = frozenset({"day", "properties", "standins"})
"""Folders whose tests are all long. Stand-ins are tested by recordings of the real ones as well."""

settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")  # how long an example takes depends on the machine, and is no finding

# A kubeconfig without a CA trusts the machine's, which takes 30 ms of CPU for each question to a worker.
os.environ["SSL_CERT_FILE"] = os.devnull


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("placement-ac")
    group.addoption(
        "--envtest",
        action="store_true",
        help=f"test on a real API server, from the folder ${envtest.VARIABLE}",
    )
    group.addoption(
        "--envtest-stand-in",
        action="store_true",
        help="as --envtest, with an embedded hub in place of the API server: tests the proxy of the tests",
    )
    group.addoption("--crds", help="with --envtest: the folder of the CRDs on it; without, the hub's own")
    group.addoption("--hub-kubeconfig", help="tests/real: a hub with OCM and Kueue")
    group.addoption(
        "--worker-kubeconfigs", help="tests/real: NAME=FILE of three of its clusters, with commas"
    )
    group.addoption(
        "--dispatcher", action="store_true", help="tests/real: its Kueue leaves nominations to us"
    )
    group.addoption("--kind", action="store_true", help="collect tests/kind, for what setup-env.sh has made")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("kind") and (missing := environment.missing()):
        raise pytest.UsageError(missing)
    if not _shares_an_api_server(config):
        return
    try:
        if config.getoption("envtest"):
            envtest.assets()
        _crds_of_the_server(config)
    except envtest.Missing as absent:
        raise pytest.UsageError(str(absent)) from None
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the servers are stopped then, too


def _shares_an_api_server(config: pytest.Config) -> bool:
    return bool(config.getoption("envtest") or config.getoption("envtest_stand_in"))


def _crds_of_the_server(config: pytest.Config) -> list[dict[str, Any]]:
    folder = config.getoption("crds")
    return envtest.crds_in(Path(folder)) if folder else all_strict_crds()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    here = Path(__file__).parent
    return True if collection_path == here / "kind" and not config.getoption("kind") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The tests of some folders are long.

    On a real API server, others are left out, and what needs the embedded hub instead is skipped.
    """
    for item in items:
        if LONG.intersection(item.path.parts):
            item.add_marker(pytest.mark.long)
    if not _shares_an_api_server(config):
        return
    hubs = [item for item in items if _has_a_hub(item)]
    config.hook.pytest_deselected(items=[item for item in items if not _has_a_hub(item)])
    items[:] = hubs
    for item in items:
        for mark in item.iter_markers("embedded"):
            item.add_marker(pytest.mark.skip(f"needs the embedded hub: {mark.args[0]}"))


def _has_a_hub(item: pytest.Item) -> bool:
    return "a_hub" in getattr(item, "fixturenames", ())


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
) -> Iterator[RealHub | None]:
    """With `--envtest` a real API server, one for all tests."""
    if not _shares_an_api_server(pytestconfig):
        yield None
        return
    crds = _crds_of_the_server(pytestconfig)
    with ExitStack() as opened:
        if pytestconfig.getoption("envtest"):
            folder = tmp_path_factory.mktemp("envtest")
            server = opened.enter_context(envtest.KubeApiServer(envtest.assets(), folder))
            yield opened.enter_context(RealHub(server, crds))
        else:
            yield opened.enter_context(RealHub(opened.enter_context(stand_in()), crds))


@pytest.fixture(scope="session")
def a_hub(real_hub: RealHub | None) -> HubMaker:
    """Makes a `Hub` with these options; with `--envtest` it is the real one, cleared."""
    return Hub if real_hub is None else real_hub.cleared


@pytest.fixture
def hub(a_hub: HubMaker, real_hub: RealHub | None) -> Iterator[Hub]:
    """A hub that refuses and prunes what real servers do, by the schemas of the published CRDs."""
    with a_hub(crds=strict_crds() if real_hub is None else None) as hub:
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
    envtest.write_plain_kubeconfig(hub, path)
    with Controllers(path) as controllers:
        yield controllers
