"""A shell with kubeconfigs, in which kubectl and we log in to the same server."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.builders import Raw, encoded
from tests.support.exec_plugins import executable
from tests.support.kubectl_login import Reach, Reached, by_kubectl, by_us, environment


@dataclass
class Shell:
    """A folder with files, and the variables of a shell."""

    reach: Reach
    folder: Path
    variables: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: object) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def config(self, user: Raw | None = None, **cluster: Any) -> None:
        """Write a kubeconfig, and name it in KUBECONFIG."""
        self.variables["KUBECONFIG"] = self.write("config", self.reach.kubeconfig(user, **cluster))

    def plugin(self, script: str, name: str = "plugin") -> str:
        return executable(self.folder / name, script)

    def both(self, *flags: str) -> tuple[Reached, Reached, str, str]:
        """Return how kubectl and we reach the server, and why not."""
        env = environment(self.folder / "home", **self.variables)
        theirs, why = by_kubectl(env, self.folder, *flags)
        self.reach.through, through = [], self.reach.through
        ours, why_not = by_us(env, self.folder, *flags)
        self.reach.through, used = [], self.reach.through
        assert sorted(set(used)) == sorted(set(through)), "not through the same proxies"
        return theirs, ours, why, why_not

    def reaches_the_same(self, case: "Case") -> None:
        """Assert that we reach the server of a case as kubectl does."""
        theirs, ours, why, why_not = self.both(*(case(self) or ()))
        assert ours == theirs, f"kubectl: {why}; we: {why_not}"


Case = Callable[[Shell], tuple[str, ...] | None]
"""Writes a kubeconfig, and returns the flags of a command."""


def user(**fields: Any) -> Case:
    return lambda shell: shell.config(fields)


def pair(shell: Shell, name: str = "me") -> Raw:
    leaf = shell.reach.clients.issue_cert("me@example.com", common_name=name)
    return {
        "client-certificate-data": encoded(leaf.cert_chain_pems[0].bytes()),
        "client-key-data": encoded(leaf.private_key_pem.bytes()),
    }
