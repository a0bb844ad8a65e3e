"""Commands load only what they need, which is most of the time that a small hub takes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.driver import Driver

# No command that only reads a hub needs these.
CONTROLLER = {
    "aiohttp.web",
    "cel_expr_python",
    "kopf",
    "placement_ac.controller.manager",
    "prometheus_client",
}
# Short ones do not need these, either.
OBJECTS = {"cryptography", "placement_ac.config.settings", "placement_ac.core.api.schemas"}


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        pytest.param("version", CONTROLLER | OBJECTS, id="version"),
        pytest.param("status", CONTROLLER, id="status"),
        pytest.param("doctor", CONTROLLER, id="doctor"),
    ],
)
def test_a_command_loads_only_what_it_needs(
    admin: Driver, kubeconfig: Path, command: str, unneeded: set[str]
) -> None:
    """aiohttp's own TLS contexts have no CA, as loading those takes longer than most modules."""
    admin.check("p")
    admin.select("p", ("a", 10))
    code = f"""
import sys
from placement_ac.cli.main import main
try:
    main(["{command}", "--kubeconfig", {str(kubeconfig)!r}], standalone_mode=False)
finally:
    from aiohttp import connector
    authorities = connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509"]
    print(*sorted({unneeded} & {{*sys.modules}}), authorities, file=sys.stderr)
"""
    env = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}  # see conftest
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=env)
    assert (run.returncode, run.stderr.splitlines()[-1]) == (0, "0")
    assert run.stdout
