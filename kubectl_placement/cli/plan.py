"""`placement-ac plan`: preview the effect of manifests before they are applied."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Final

import click
from rich.console import RenderableType
from rich.text import Text

from kubectl_placement.cli.explain_workload import placed_text
from kubectl_placement.cli.hub_options import HubReading, HubSource, hub_options, read_all_namespaces
from kubectl_placement.cli.job_defaults import with_job_defaults
from kubectl_placement.cli.managed_namespaces import read_unmanaged, unmanaged_in_dump
from kubectl_placement.cli.missing_kinds import report_missing, require_served, require_settings
from kubectl_placement.cli.output import emit, safe_text
from kubectl_placement.cli.setup_inputs import with_setup_inputs
from kubectl_placement.cli.worker_options import WorkerOptions, quota_options, require_hub, with_quota
from kubectl_placement.hub.dump import InvalidManifest, Object
from kubectl_placement.hub.dump_files import kind_of
from kubectl_placement.hub.kinds import PROVISIONED_KINDS, QUEUE_KINDS
from kubectl_placement.hub.requirements import SCHEDULING_KINDS, SERVED_KINDS, missing_rights_text
from kubectl_placement.jobs.new_job import DEFAULT_NAMESPACE, NewJob, is_job, workers_of_jobs
from kubectl_placement.plan.manifest_changes import planned_resources
from kubectl_placement.plan.plan_report import (
    AffectedWorkload,
    PlannedPlacement,
    PlanReport,
    QuotaSum,
    SetupChange,
    SetupQuota,
)
from kubectl_placement.plan.what_if import new_jobs, what_if
from kubectl_placement.readers.dry_run import refusals
from kubectl_placement.readers.manifests import STDIN, files_of, read_manifests
from placement_ac.cli.documents import Form, output
from placement_ac.cli.login_options import login_to, with_client
from placement_ac.cli.read_command import ReadCommand
from placement_ac.core.api.constants import (
    CLUSTER_PROFILE,
    MANIFEST_WORK,
    SECRET,
    SETUP_NAME,
    WORKLOAD,
)
from placement_ac.core.api.printable import one_line
from placement_ac.core.api.text import count_text, joined
from placement_ac.kube.client import Client

CHANGES: Final = 1
"""The exit code if something would change."""
UNKNOWN: Final = 2
"""The exit code if it is unknown what OCM would decide for a Placement."""
NOT_VALIDATED: Final = "not validated: with --server-side, the API server says what it would refuse"
_OPTIONAL_KINDS: Final = (
    SECRET,
    CLUSTER_PROFILE,
    WORKLOAD,
    *QUEUE_KINDS,
    *PROVISIONED_KINDS,
    MANIFEST_WORK,
)
"""Kinds without which decisions and Kueue's list can still be computed."""
_NEEDED: Final = (*SERVED_KINDS, *SCHEDULING_KINDS)
"""The kinds that the hub must serve."""
_SIGNS: Final = {"add": "+", "change": "~", "remove": "-"}
_COLOURS: Final = (("@@", "cyan"), ("---", "bold"), ("+++", "bold"), ("+", "green"), ("-", "red"))


class PlanCommand(ReadCommand):
    """Its exit codes are those of `kubectl diff`."""

    error_code = UNKNOWN


def _names(values: Iterable[str]) -> tuple[str, ...]:
    """Return all names in the values of `-f`. Raises BadParameter."""
    try:
        return tuple(chain.from_iterable(map(files_of, values)))
    except InvalidManifest as error:
        raise click.BadParameter(str(error)) from None


@click.command(
    "plan", cls=PlanCommand, epilog="Example:  placement-ac plan -f samples/placement-demo2-2.yaml"
)
@hub_options
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    callback=lambda _, __, values: _names(values),
    metavar="FILE,…",
    help="The manifests: files, folders, or - for stdin; may be given several times.",
)
@click.option(
    "--server-side",
    is_flag=True,
    help="Have the API server validate the manifests, by a dry run; it needs the rights to write them.",
)
@quota_options
@output("json", "yaml", "name")
def command(
    where: HubSource,
    files: tuple[str, ...],
    server_side: bool,
    wanted: WorkerOptions | None,
    form: Form,
) -> None:
    """Preview what manifests would change, before they are applied.

    Exit code: 0 nothing changes, 1 something changes, 2 error or unknown.
    """
    if server_side and where.dump_files:
        raise click.UsageError("use --server-side without --from-dump: it needs a hub")
    require_hub(where, wanted)
    if STDIN in files and STDIN in where.dump_files:
        raise click.UsageError("use a file for -f or --from-dump: stdin can be read only once")
    manifests = _in_namespace(read_manifests(files), where)
    spaces = (manifest["metadata"].get("namespace") for manifest in manifests)
    namespaces = sorted({one for one in spaces if isinstance(one, str) and one})
    found = read_all_namespaces(where, namespaces=namespaces, schemas=planned_resources(manifests))
    require_served(found, _NEEDED)
    if any(right.kind not in _OPTIONAL_KINDS for right in found.dump.missing):
        rights = missing_rights_text(found.missing_rights)
        raise click.ClickException(f"{rights}; without these rights no preview is possible")
    require_settings(found)
    report_missing(found)
    found = _with_job_inputs(where, found, manifests)
    if server_side:
        _validate(where, manifests, found.view.settings.placement_namespace[0])
    answer = what_if(found.view, manifests)
    if wanted:
        after = with_quota(where, answer.after, workers_of_jobs(answer.after, manifests), wanted)
        answer = replace(answer, jobs=new_jobs(after, manifests))
    document = {
        "placements": [entry.plan for entry in answer.entries],
        "unknown": answer.unknown,
        "objects": answer.objects,
        "jobs": answer.jobs,
        "setups": answer.setups,
        "quota": answer.quota,
        "passedOver": answer.passed_over,
        "warnings": answer.warnings,
        "validated": server_side,
    }
    names = [
        f"placement/{entry.plan.namespace}/{entry.plan.name}" for entry in answer.entries if entry.changed
    ]
    emit(form, document, lambda _: _for_people(answer), lambda: names)
    for line in _notes(answer, validated=server_side or form != "table"):
        click.echo(line, err=True)
    if form == "table":
        emit(form, document, lambda _: _diffs(answer))
    if answer.unknown or answer.changed:
        click.get_current_context().exit(UNKNOWN if answer.unknown else CHANGES)


def _with_job_inputs(where: HubSource, reading: HubReading, manifests: Sequence[Object]) -> HubReading:
    """Return the reading with what decides on workers' queues, and on whether Kueue manages the jobs."""
    if where.dump_files:
        return unmanaged_in_dump(reading)
    jobs = [one["metadata"] for one in manifests if is_job(one)]
    names = [metadata.get("namespace") or DEFAULT_NAMESPACE for metadata in jobs]

    async def read(client: Client) -> HubReading:
        found = await with_setup_inputs(client, reading, manifests)
        found = await with_job_defaults(client, found, [one for one in manifests if is_job(one)])
        return await read_unmanaged(client, found, names) if names else found

    return with_client(where, read)


def _in_namespace(manifests: Sequence[Object], where: HubSource) -> list[Object]:
    """Return the manifests, those without a namespace in the context's, where kubectl would create them.

    With `-n` or a dump, they stay as they are. Raises LoginFailed.
    """
    if where.namespace or where.dump_files or not any(map(_lacks_namespace, manifests)):
        return [*manifests]
    place = {"namespace": login_to(where).namespace}
    return [
        one | {"metadata": one["metadata"] | place} if _lacks_namespace(one) else one for one in manifests
    ]


def _lacks_namespace(manifest: Object) -> bool:
    kind = kind_of(manifest)[0]
    is_namespaced = is_job(manifest) or (kind is not None and kind.namespaced)
    return is_namespaced and not manifest["metadata"].get("namespace")


def _validate(where: HubSource, manifests: Sequence[Object], namespace: str) -> None:
    """Raise ClickException with what the API server says of each manifest that it refuses."""
    found = with_client(where, partial(refusals, manifests=manifests, namespace=namespace))
    if found:
        raise click.ClickException("\n".join(map(one_line, found)))


def _notes(answer: PlanReport, *, validated: bool) -> Iterator[str]:
    """Yield the lines for stderr; a document says itself whether it is `validated`."""
    yield from (f"ignored: {one_line(name)}" for name in answer.passed_over)
    yield from (f"warning: {one_line(warning)}" for warning in answer.warnings)
    if not validated:
        yield NOT_VALIDATED


# -- tables


def _for_people(answer: PlanReport) -> Iterator[RenderableType]:
    """Yield the answer, then what it consists of; the diffs follow the warnings."""
    is_about_jobs = answer.jobs and not answer.entries and not answer.objects
    if not (answer.changed or answer.unknown or is_about_jobs):
        yield Text("Nothing changes.")
    for one in answer.unknown:
        yield safe_text(f"Placement {one.namespace}/{one.name}: unknown: {one.why}", "bold yellow")
    for entry in answer.entries:
        yield from _of_placement(entry, answer.after.settings.placement_namespace)
    yield from map(safe_text, chain.from_iterable(map(_of_setup, answer.setups)))
    yield from map(safe_text, chain.from_iterable(map(_of_quota, answer.quota)))
    yield from map(safe_text, chain.from_iterable(map(_of_job, answer.jobs)))
    for change in answer.objects:
        if change.verb != "none":
            name = "/".join(filter(None, (change.namespace, change.name)))
            yield safe_text(f"{change.verb} {change.kind} {name}")


def _diffs(answer: PlanReport) -> Iterator[RenderableType]:
    """Yield the writes of the controller."""
    for write in chain.from_iterable(entry.plan.writes for entry in answer.entries):
        yield Text()
        yield safe_text(f"{write.verb} {write.kind} {write.name}, {write.when}", "bold")
        yield from map(_coloured, write.diff.splitlines())


def _of_setup(change: SetupChange) -> Iterator[str]:
    """Yield what the ManifestWork of a cluster puts there, changes or removes."""
    when = ", when the cluster has left the list" if change.verb == "delete" else ""
    yield f"{change.verb} ManifestWork {change.cluster}/{SETUP_NAME}{when}"
    for one in change.objects:
        quota = ", ".join(map(_of_setup_quota, one.quota))
        label = f"{one.kind} {'/'.join(filter(None, (one.namespace, one.name)))}"
        yield f"  {_SIGNS[one.verb]} {label}" + (f": {quota}" if quota else "")


def _of_setup_quota(quota: SetupQuota) -> str:
    amounts = filter(None, dict.fromkeys((quota.before, quota.after or "none")))
    return f"{quota.flavor} {quota.resource} {' → '.join(amounts)}"


def _of_quota(quota: QuotaSum) -> Iterator[str]:
    """Yield what the sum of quota becomes, next to that of the hub."""
    names, workers = joined(quota.queues), count_text(quota.workers, "listed worker")
    sums = " → ".join(filter(None, dict.fromkeys((quota.before, quota.after))))
    unknown = f" (unknown: {joined(quota.unknown)})" if quota.unknown else ""
    yield f"quota of {quota.resource}: {quota.on_hub} on the hub ({names}), {sums} on {workers}{unknown}"
    if quota.problem:
        yield f"  warning: {quota.problem}; to set it: {quota.fix}"


def _of_job(job: NewJob) -> Iterator[str]:
    """Yield where a job would go, and through which queues and Placements."""
    title = f"{job.kind} {job.namespace}/{job.name}"
    if job.problem:
        yield f"{title}: no preview is possible: {job.problem}"
    for choice in job.placements:
        path = f"queue {job.queue}, ClusterQueue {job.cluster_queue}, Placement {choice.placement}"
        goes = " goes to" if choice.dispatcher else ":"
        yield f"{title}{goes} {placed_text(choice)} ({path})"
    yield from (f"  note: {note}" for note in job.notes)


def _of_placement(entry: PlannedPlacement, used: Sequence[str]) -> Iterator[RenderableType]:
    """Yield the plan of a Placement; `used`: the namespaces of those that AdmissionChecks may name."""
    plan = entry.plan
    why = "no AdmissionCheck names it"
    if plan.namespace not in used:
        why = f"AdmissionChecks name those in namespace {joined(used, ' or ')}"
    what = "Kueue's list" if entry.listed else f"decisions, best first ({why})"
    title = f"Placement {plan.namespace}/{plan.name}: {what}: {', '.join(plan.order) or 'empty'}"
    yield safe_text(title, "bold")
    for cluster in plan.added:
        yield safe_text(f"  + {cluster}{_in_brackets(entry.cluster_details.get(cluster, ''))}", "green")
    for cluster in plan.removed:
        yield safe_text(f"  - {cluster}{_in_brackets(_leaves(entry, cluster))}", "red")
    yield from (safe_text(f"  {line}") for line in _lines(entry))
    yield from (safe_text(f"  warning: {warning}", "yellow") for warning in plan.warnings)


def _in_brackets(message: str) -> str:
    return f" ({message})" if message else ""


def _leaves(entry: PlannedPlacement, cluster: str) -> str:
    jobs = [one for one in entry.plan.affected if one.cluster == cluster]
    if jobs:
        what = "sent again" if cluster in entry.plan.order else "drains"
        return f"{what}: {', '.join(_counted(jobs))}"
    if cluster in entry.plan.draining:
        return "it stays listed for now: OCM cannot reach it"
    if not entry.listed:
        return ""
    if not entry.jobs_known:
        return "its jobs are unknown"
    if others := entry.other_jobs.get(cluster, 0):
        return f"no job of its checks runs there, {count_text(others, 'Workload')} of other checks"
    return "no job runs there"


def _counted(jobs: Sequence[AffectedWorkload]) -> Iterator[str]:
    for state in ("running", "waiting"):
        of_it = [job for job in jobs if job.state == state]
        if of_it:
            gpus = sum(one.gpus for one in of_it)
            with_gpus = f" with {count_text(gpus, 'GPU')}" if gpus else ""
            yield f"{count_text(len(of_it), f'{state} Workload')}{with_gpus}"


def _lines(entry: PlannedPlacement) -> Iterator[str]:
    plan = entry.plan
    if plan.beyond:
        more = f"beyond the {entry.clusters_max} clusters that Kueue takes"
        yield f"{len(plan.beyond)} {more}: {joined(plan.beyond)}"
    yield from (f"unusable: {cluster}: {why}" for cluster, why in plan.unusable.items())
    for condition in plan.conditions:
        yield f"{condition.type}: {condition.status}, {condition.reason}: {condition.message}"
    for check in plan.checks:
        before = f"{check.before.status}, {check.before.reason}" if check.before else "nothing yet"
        after = f"{check.after.status}, {check.after.reason}"
        change = f"stays {after}" if before == after else f"{before} → {after}"
        yield f"AdmissionCheck {check.name}: {change}: {check.after.message}"


def _coloured(line: str) -> Text:
    return safe_text(line, next((colour for start, colour in _COLOURS if line.startswith(start)), ""))
