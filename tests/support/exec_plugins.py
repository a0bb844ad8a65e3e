"""Executables that a test writes: shell scripts, and credential plugins among them."""

import json
from collections.abc import Callable
from pathlib import Path

V1 = "client.authentication.k8s.io/v1"
BETA = "client.authentication.k8s.io/v1beta1"
TOKEN = "SeCrEt-42"
Plugin = Callable[[str], str]
"""The fixture `plugin`: writes a plugin with this script, and returns its path."""


def executable(path: Path, script: str) -> str:
    """Write a shell script that may be run; return its path."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def exec_credential(version: str = V1, **status: str) -> str:
    """Return what a plugin prints, as JSON."""
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})


def gives(token: str = TOKEN, **status: str) -> str:
    """Return the script of a plugin that gives this token."""
    return f"echo '{exec_credential(token=token, **status)}'"
