"""No command may dump a core: tokens could be in it."""

import subprocess
import sys

import pytest

RUN = """
import resource, sys
import {module}.__main__ as entry
sys.argv = ["placement-ac", *sys.argv[2:]]
try:
    getattr(entry, {entry!r})()
finally:
    print("limits:", *resource.getrlimit(resource.RLIMIT_CORE))
"""


@pytest.mark.parametrize(
    ("module", "entry", "words"),
    [
        pytest.param("placement_ac", "main", ["--version"], id="placement-ac"),
        pytest.param("kubectl_placement", "plugin", ["status", "--help"], id="kubectl placement"),
        pytest.param("kubectl_placement", "complete", [""], id="the completion of kubectl"),
    ],
)
def test_no_core_is_dumped(module: str, entry: str, words: list[str]) -> None:
    """Not even if somebody raises the soft limit again: the hard limit is zero as well."""
    code = RUN.format(module=module, entry=entry)
    done = subprocess.run(
        [sys.executable, "-c", code, "-", *words], capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1:] == ["limits: 0 0"], done.stderr
