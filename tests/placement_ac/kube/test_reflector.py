"""There is one way to follow a hub."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[3]
PACKAGES = ("placement_ac", "kubectl_placement", "placement_lab")


def opens_a_watch(path: Path) -> bool:
    """Whether a file calls the `watch` of a client."""
    calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    return any(
        isinstance(call, ast.Attribute)
        and call.attr == "watch"
        and ast.unparse(call.value).endswith(("client", "_client"))
        for call in calls
    )


def test_only_the_reflector_follows_a_kind() -> None:
    """The election waits for changes of one Lease; the stand-in for Kueue reads its first list by a watch."""
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert sorted(str(path.relative_to(ROOT)) for path in paths if opens_a_watch(path)) == [
        "placement_ac/controller/lease.py",
        "placement_ac/kube/reflector.py",
        "placement_lab/standins/informer.py",
    ]
