"""The rule for the caller's own rights: without them, the other rules do not know. Pure."""

from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, ok, warn
from kubectl_placement.doctor.setup import OWN_RIGHTS, HubSetup, hub_rule
from kubectl_placement.hub.requirements import FIND_VIEWER_ROLES, VIEWER_KINDS, resources_text


@hub_rule(
    OWN_RIGHTS,
    "you may read what the checks below need",
    f"{FIND_VIEWER_ROLES}  # an admin binds those that end in -viewer to you: docs/inspect.md",
)
def own_rights(setup: HubSetup) -> Iterator[Finding]:
    missing = setup.view.missing_rights
    if not missing:
        yield ok("you may read all that the checks below need" if setup.dump.live else "a dump was read")
        return
    message = f"unknown without more rights: you may not list {resources_text(missing)}"
    in_role = any(right.kind in VIEWER_KINDS for right in missing)
    yield warn(message, own_rights.fix if in_role else missing[0].check_command)


RULES: Final = (own_rights,)
