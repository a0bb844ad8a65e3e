"""The rule for the dispatcher's profiles: the scores and profiles that the checks name exist. Pure."""

import shlex
from collections.abc import Iterator
from typing import Final

from kubectl_placement.doctor.finding import Finding, fail, ok
from kubectl_placement.doctor.setup import HubSetup, hub_rule
from placement_ac.core.api.constants import ADMISSION_CHECK, ANNOTATION_DISPATCH_PROFILE
from placement_ac.core.api.fields import get_str, name_of
from placement_ac.core.api.text import did_you_mean
from placement_ac.core.dispatch.profiles import PROFILES, RANKED, ProfileError, parse_profile
from placement_ac.core.dispatch.scores import SCORES


@hub_rule(
    "dispatch-profiles",
    "with the dispatcher: the profiles of the checks exist, and so do the scores that they name",
    "kubectl annotate admissioncheck CHECK placement-ac.open-cluster-management.io/dispatch-profile=PROFILE",
    ADMISSION_CHECK,
)
def dispatch_profiles(setup: HubSetup) -> Iterator[Finding]:
    if not setup.settings.dispatcher:
        yield ok("there is no dispatcher")
        return
    ours = {check.meta.name for check in setup.view.our_checks}
    for check in setup.dump.of(ADMISSION_CHECK):
        name, profile = name_of(check), get_str(check, "metadata", "annotations", ANNOTATION_DISPATCH_PROFILE)
        if name in ours and profile:
            change = f"{ANNOTATION_DISPATCH_PROFILE}={RANKED}"
            fix = f"kubectl annotate --overwrite admissioncheck {shlex.quote(name)} {change}"
            yield from _judged(f"the profile of AdmissionCheck {name}", profile, fix)
    yield ok("every profile exists")


def _judged(what: str, profile: str, fix: str) -> Iterator[Finding]:
    words = [part.partition("=")[0].strip() for part in profile.split(",")]
    known = (*PROFILES, *SCORES)
    meant = "".join(did_you_mean(word, known) for word in words if word not in known)
    try:
        parse_profile(profile)
    except ProfileError as error:
        yield fail(f"{what}: {error}{meant}", fix)


RULES: Final = (dispatch_profiles,)
