"""YAML that we write is read as what it was, by kubectl, by PyYAML, and by our own reader."""

import json
import shutil
import subprocess
from itertools import product

import pytest
import yaml

from placement_ac.core.api.to_yaml import to_yaml
from placement_ac.core.safe_yaml import load_yaml

BARE = """
y Y yes Yes YES n N no No NO true True TRUE false False FALSE on On ON off Off OFF null Null NULL ~
.inf .Inf .INF +.inf -.inf .nan .NaN .NAN << = 2026-01-01 2026-01-01T00:00:00Z 1:30 190:20:30.5
12e5 1e3 1E+5 0o10 0O7 010 08 09.5 0x1F 0X1f 0b11 0B1 0b+1 +_1 1_000 .1_1 .1__1 1.e5 1e400
"""
QUOTED = (
    *("", " ", "- a", "a: b", "# a", "a #b", "!a", "&a", "*a", "@a", "%a", "|", ">", "'", '"', "\\"),
    *("a\nb", "\ta", "a\u2028b", "\x85", "\ufeff", "\x1b[31m", "\U0001f600", str(2**64), "9" * 400),
)
SHORT = tuple("".join(letters) for size in (1, 2, 3) for letters in product("018.eE+-_xob:y", repeat=size))
WORDS = sorted({*BARE.split(), *QUOTED, *SHORT})
"""PyYAML's resolver alone writes 79 of up to three letters of such alphabets bare, which kubectl reads
otherwise: exponents without a point, octal numbers that are none, signed fractions, `0o…`, `y`, `n`."""


@pytest.mark.parametrize("flow", [False, None])
def test_every_reader_reads_what_was_written(flow: bool | None) -> None:
    document = {"values": WORDS, "keys": dict.fromkeys(WORDS, 1)}
    text = to_yaml(document, flow=flow)
    assert load_yaml(text) == document
    assert yaml.safe_load(text) == document


@pytest.mark.parametrize("value", [5, -3, 0.1, 1e17, 1e-5, 2**63, True, None, [], {}, [{}, {}]])
def test_other_types_stay_what_they_are(value: object) -> None:
    assert load_yaml(to_yaml({"a": value})) == {"a": value}


@pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")
def test_kubectl_reads_what_was_written() -> None:
    words = dict(zip(WORDS, WORDS, strict=True))
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "1e3"}, "data": words}
    command = ("kubectl", "patch", "--local", "-f", "-", "--type=merge", "-p", "{}", "-o", "json")
    done = subprocess.run(command, input=to_yaml(wanted), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == wanted
