"""`placement-ac doctor`: check the setup of a hub, and print the command that fixes each problem."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import click
from rich.text import Text

from kubectl_placement.cli.doctor_table import counts, doctor_table, prompt
from kubectl_placement.cli.hub_options import (
    HubReading,
    HubSource,
    hub_options,
    read_hub,
    read_installations,
    read_once,
)
from kubectl_placement.cli.output import emit
from kubectl_placement.cli.setup_inputs import with_setup_inputs
from kubectl_placement.cli.worker_options import (
    WORKER_QUEUE_KINDS,
    WorkerOptions,
    inspect_workers,
    require_hub,
    worker_options,
)
from kubectl_placement.doctor.finding import DoctorRule, Finding
from kubectl_placement.doctor.fleet_rules import RULES as FLEET_RULES
from kubectl_placement.doctor.folding import causes_of, fold
from kubectl_placement.doctor.hub_rules import RULES, examine_hub
from kubectl_placement.doctor.kueue import HubKueue
from kubectl_placement.doctor.setup import HubSetup
from kubectl_placement.doctor.worker_rules import RULES as WORKER_RULES
from kubectl_placement.doctor.worker_rules import examine_workers
from kubectl_placement.hub import kinds
from kubectl_placement.hub.managed_namespaces import selects_namespaces
from kubectl_placement.readers.hub_reader import read_kinds
from placement_ac.cli.documents import Form, output
from placement_ac.cli.login_options import with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import ADDON, EVENT, JOB, LOCAL_QUEUE, NAMESPACE, Kind
from placement_ac.kube.client import Client

FAILED_EXIT: Final = 2
"""The exit code if a line is FAIL."""
_SELECTED: Final = (NAMESPACE, LOCAL_QUEUE)
"""The kinds that a rule reads where Kueue's configuration selects namespaces."""
_UNUSED: Final = {EVENT, ADDON, *WORKER_QUEUE_KINDS, *_SELECTED}
KINDS: Final = (*(kind for kind in kinds.ALL_KINDS if kind not in _UNUSED), JOB)
"""The kinds that the rules for the hub always read."""


@click.command("doctor", cls=ReadCommand, epilog="Example:  placement-ac doctor")
@hub_options
@worker_options
@click.option("--list", "only_list", is_flag=True, help="Print the checks, and exit.")
@output("json", "yaml")
def command(where: HubSource, wanted: WorkerOptions | None, only_list: bool, form: Form) -> None:
    """Check the setup of this hub: each line is OK, SKIP, WARN or FAIL, with the command that fixes it.

    The consequences of a problem are below it, and do not count as others.

    With --workers it also inspects each worker, with the credentials that the hub has for it. The fix for a
    worker uses a context of the cluster's name.

    Exit code: 0 without a FAIL, 2 with one, 1 when the hub cannot be read.
    """
    if only_list:
        rules = _rules()
        listed = [{"check": rule.check, "looksAt": rule.looks_at, "fix": rule.fix} for rule in rules]
        lines = (Text(f"{rule.check}: {rule.looks_at}\n{prompt(rule.fix)}") for rule in rules)
        emit(form, listed, lambda _: lines)
        return
    findings = _examined(where, wanted)
    problems = fold(findings)
    count = counts(problems)
    document = {
        "findings": [_entry(*pair) for pair in zip(findings, causes_of(findings), strict=True)],
        "summary": count,
    }
    emit(form, document, lambda _: doctor_table(problems))
    if any(finding.fix for finding in findings) and (where.kubeconfig or where.context or where.dump_files):
        click.echo("switch your current context to this hub before you paste the fixes", err=True)
    if count["fail"]:
        click.get_current_context().exit(FAILED_EXIT)


def _rules() -> list[DoctorRule[Any]]:
    """Return each rule once: one of the hub may look at the workers, too."""
    rules: tuple[DoctorRule[Any], ...] = (*RULES, *WORKER_RULES, *FLEET_RULES)
    return [*{rule.check: rule for rule in reversed(rules)}.values()][::-1]


def _entry(finding: Finding, cause: str) -> dict[str, str]:
    return {
        "check": finding.check,
        "level": finding.level,
        "message": finding.message,
        "fix": finding.fix,
        "cause": cause,
    }


def _examined(where: HubSource, wanted: WorkerOptions | None) -> tuple[Finding, ...]:
    require_hub(where, wanted)
    if not where.dump_files:
        return with_client(where, lambda client: _on_hub(client, where, wanted))
    return examine_hub(_setup(where, read_once(where, (*KINDS, *_SELECTED))))


def _setup(where: HubSource, reading: HubReading) -> HubSetup:
    settings, is_given = reading.controller, where.config is not None
    namespace = where.controller_namespace or reading.controller_namespace
    return HubSetup(reading.view, settings.deployment, settings.problem, namespace, is_given, settings.lease)


async def _on_hub(client: Client, where: HubSource, wanted: WorkerOptions | None) -> tuple[Finding, ...]:
    setup = _setup(where, await _read(client, where, (*KINDS, *WORKER_QUEUE_KINDS) if wanted else KINDS))
    inspections = await inspect_workers(client, setup, wanted) if wanted else ()
    return (*examine_hub(setup), *examine_workers(setup, inspections))


async def _read(client: Client, where: HubSource, wanted: Sequence[Kind]) -> HubReading:
    """Read the hub, with all that doctor needs of the installations of the controller and of Kueue."""
    reading = await read_hub(client, where, wanted)
    whole = reading.dump.with_kinds_of(await read_installations(client, reading))
    settings = reading.view.settings
    if selects_namespaces(HubKueue(whole, settings.kueue_namespace, settings.kueue_version).config):
        whole = whole.with_kinds_of(await read_kinds(client, _SELECTED, {}))
    whole = replace(whole, release=await client.release())
    return await with_setup_inputs(client, replace(reading, view=replace(reading.view, dump=whole)))
