"""
Display the demo: panels in a terminal, plain text in a pipe or log, JSON documents for programs.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, Self

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from kubectl_placement.jobs.choice import PlacementChoice
from placement_ac.core.api.constants import LABEL_MANAGED_BY, LABEL_PLACEMENT, MANAGED_BY, SCORES_NAME
from placement_ac.core.api.text import enumeration
from placement_ac.kube.client import Object
from placement_lab.demo.credentials import ProvisionedCredentials, created_by_controller
from placement_lab.demo.reasons import choice_document, choice_lines
from placement_lab.demo.runner import DemoStepResult, JobResult
from placement_lab.demo.steps import StoryStep
from placement_lab.demo.viewer import JobStatus

CUSTOM_COLUMNS: Final = (
    "NAME:.metadata.name,"
    "CONNECTED:.status.conditions[0].status,"
    "SECRET:.spec.clusterSource.kubeConfig.location,"
    "PROFILE:.spec.clusterSource.clusterProfileRef.name"
)
HEADS: Final = ("NAME", "CONNECTED", "SECRET", "PROFILE")
NONE: Final = "<none>"
CONDITION: Final = "{.status.conditions[?(@.type=='Active')]['status','reason','message']}"


JOB_HEADS: Final = ("JOB", "CLUSTER", "CHECK", "FINISHED")
JOB_COLUMNS: Final = (
    "JOB:.metadata.ownerReferences[0].name,"
    "CLUSTER:.status.clusterName,"
    'CHECK:.status.admissionChecks[?(@.name=="{}")].state,'
    'FINISHED:.status.conditions[?(@.type=="Finished")].status'
)

CREDENTIALS_HEADS: Final = ("KIND", "NAMESPACE", "NAME")
CREDENTIALS_COMMAND: Final = (
    f"kubectl get managedserviceaccounts,clusterpermissions,secrets -A -l {LABEL_MANAGED_BY}={MANAGED_BY} "
    "-o custom-columns='KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name'"
)
SCORES_HEADS: Final = ("CLUSTER", "GPUFREE")
SCORES_COMMAND: Final = (
    f"kubectl get addonplacementscores -A --field-selector metadata.name={SCORES_NAME} "
    "-o custom-columns='CLUSTER:.metadata.namespace,GPUFREE:.status.scores[?(@.name==\"gpuFree\")].value'"
)


class JsonRenderer:
    """Prints one JSON document per step, one per line, and a last one with the results of jobs."""

    def step_started(self, number: int, step: StoryStep) -> None:
        """Print nothing: the document follows when the step is finished."""

    def step_finished(self, result: DemoStepResult) -> None:
        click.echo(json.dumps(document(result)))

    def demo_finished(self, results: Sequence[DemoStepResult], job_results: Sequence[JobResult] = ()) -> None:
        """Print the results of jobs, if there are any."""
        if job_results:
            click.echo(json.dumps(last_document(results, job_results)))


def document(result: DemoStepResult) -> dict[str, Any]:
    """Return the JSON document of a step: step, objects, condition, elapsed milliseconds."""
    name, job, choice = result.step.placement, result.job, result.choice
    chosen = {"job": _job_document(job, name, choice)} if job and choice else {}
    credentials = {"credentials": _credentials_document(result.credentials)} if result.credentials else {}
    return {
        "step": result.number,
        "story": result.step.story,
        "title": result.step.title,
        "done": list(result.step.commands),
        "ok": result.succeeded,
        "elapsedMilliseconds": round(result.elapsed_ms, 1),
        "reactionMilliseconds": None if result.reaction_ms is None else round(result.reaction_ms, 1),
        "decision": list(result.decision),
        "objects": list(result.objects),
        "condition": result.condition,
    } | (chosen | credentials)


def _job_document(job: JobStatus, check: str, choice: PlacementChoice) -> dict[str, Any]:
    """Return a job for which our dispatcher nominates, and why it goes where it does."""
    return {
        "name": job.name,
        "runsOn": list(job.runs_on),
        "message": job.message_of(check),
        "choice": choice_document(choice),
    }


def _credentials_document(credentials: ProvisionedCredentials) -> dict[str, list[str]]:
    return {
        "current": list(credentials.current),
        "renewed": list(credentials.renewed),
        "workers": credentials.workers,
    }


def last_document(results: Sequence[DemoStepResult], job_results: Sequence[JobResult]) -> dict[str, Any]:
    """Return the last JSON document: the workers' counts of each job, and whether all steps succeeded."""
    return {
        "jobs": {job.name: job.counts for job_result in job_results for job in job_result.jobs},
        "ok": all(job_result.succeeded for job_result in job_results)
        and all(result.succeeded for result in results),
        "summary": " ".join(map(job_summary, job_results)),
    }


class TextRenderer:
    """Prints plain text, for a pipe or a log."""

    def step_started(self, number: int, step: StoryStep) -> None:
        click.echo(f"Story {step.story}, step {number}: {step.title}")
        for line in step.commands:
            click.echo(f"  $ {line}" if line.startswith(("kubectl", "sed")) else f"  # {line}")

    def step_finished(self, result: DemoStepResult) -> None:
        for line in result_lines(result):
            click.echo(f"  {line}")
        click.echo(f"  {step_summary(result)}\n")

    def demo_finished(self, results: Sequence[DemoStepResult], job_results: Sequence[JobResult] = ()) -> None:
        for job_result in job_results:
            click.echo(job_summary(job_result))
        click.echo(summary(results))


def result_lines(result: DemoStepResult) -> Iterable[str]:
    """Yield the objects after a step, in the format of kubectl."""
    if result.job and result.choice:
        yield from chosen_lines(result.job, result.step.placement, result.choice)
    else:
        yield from _list_lines(result)


def _list_lines(result: DemoStepResult) -> Iterable[str]:
    """Yield the list, the check, and the job, credentials and scores if the step expects any."""
    name = result.step.placement
    config, clusters = _split(result.objects)
    yield f"$ kubectl get multikueueconfig {name} -o jsonpath='{{.spec.clusters}}'"
    yield _compact(config["spec"]["clusters"]) if config else "Error from server (NotFound)"
    yield f"$ kubectl get multikueueclusters -l {LABEL_PLACEMENT}={name} -o custom-columns='{CUSTOM_COLUMNS}'"
    yield from columns([HEADS, *map(_row, clusters)])
    yield f'$ kubectl get admissioncheck {name} -o jsonpath="{CONDITION}"'
    condition = result.condition
    yield " ".join(str(condition.get(key, "")) for key in ("status", "reason", "message")).strip() or "(none)"
    if result.job:
        yield from job_lines(result.job, name)
    if result.credentials:
        yield from credential_lines(result.credentials)
    if result.step.scores:
        yield f"$ {SCORES_COMMAND}"
        yield from columns([SCORES_HEADS, *map(_score_row, _scores(result))])


def job_lines(job: JobStatus, check: str) -> Iterable[str]:
    """Yield the state of a job: its Workloads in the format of kubectl, and the workers' counts."""
    yield f"$ kubectl get workloads -o custom-columns='{JOB_COLUMNS.format(check)}'"
    yield from columns([JOB_HEADS, *(_job_row(obj, check) for obj in _workloads(job))])
    yield f"# on the workers: {job_on_workers(job)}"


def chosen_lines(job: JobStatus, check: str, choice: PlacementChoice) -> Iterable[str]:
    """Yield a job for which our dispatcher nominates, and why it goes where it does."""
    names = " ".join(obj["metadata"]["name"] for obj in _workloads(job))
    yield f"$ kubectl get workload {names} -o custom-columns='{JOB_COLUMNS.format(check)}'"
    yield from columns([JOB_HEADS, *(_job_row(obj, check) for obj in _workloads(job))])
    yield f"# on the workers: {job_on_workers(job)}"
    head, *clusters = choice_lines(choice)
    yield f"# why: {head}"
    yield from (f"#   {line}" for line in clusters)


def credential_lines(credentials: ProvisionedCredentials) -> Iterable[str]:
    """Yield the provisioned credentials: the hub's objects in the format of kubectl, tokens and workers."""
    yield f"$ {CREDENTIALS_COMMAND}"
    rows = [
        (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        for obj in created_by_controller(credentials.objects)
    ]
    yield from columns([CREDENTIALS_HEADS, *rows])
    yield f"# in the kubeconfigs: {token_summary(credentials)}"
    yield f"# on the workers: {worker_summary(credentials)}"


def token_summary(credentials: ProvisionedCredentials) -> str:
    """Return which clusters' kubeconfigs hold OCM's latest token, and which tokens are new."""
    if not credentials.current:
        return "no tokens"
    renewed = f"; renewed: {' and '.join(credentials.renewed)}" if credentials.renewed else ""
    return f"OCM's latest token for {enumeration(credentials.current, 'and')}{renewed}"


def worker_summary(credentials: ProvisionedCredentials) -> str:
    """Return which workers hold provisioned objects."""
    workers = credentials.workers
    return f"ServiceAccounts and roles on {enumeration(workers, 'and')}" if workers else "nothing"


def job_on_workers(job: JobStatus) -> str:
    """Return where a job runs, and the workers' counts."""
    where = f"runs on {' and '.join(job.runs_on)}" if job.runs_on else "runs nowhere"
    return f"{job.name} {where}; {counts(job)}"


def counts(job: JobStatus) -> str:
    """Return how often the job was started, and how many copies ran at once."""
    starts, most = job.counts["starts"], job.counts["maxCopies"]
    started = f"started {starts} time{'' if starts == 1 else 's'}"
    return f"{started}, {'at most 1 copy' if most <= 1 else f'{most} copies'} at a time"


def job_summary(job_result: JobResult) -> str:
    """Return the final counts of the jobs and the conclusion; of the wrong ones, if any are wrong."""
    expected = job_result.expected
    wrong = [job for job in job_result.jobs if job.counts != expected.counts]
    if wrong:
        parts = (f"Job {job.name}: {_final(job)}: FAILED" for job in wrong)
        return f"{'; '.join(parts)}; expected {_compact(expected.counts)}"
    first, *others = job_result.jobs
    names = enumeration([job.name for job in job_result.jobs], "and")
    subject = f"Jobs {names}: each" if others else f"Job {names}:"
    return f"{subject} {_final(first)}: {expected.conclusion}."


def _final(job: JobStatus) -> str:
    """Return the final counts of a job."""
    return f"{counts(job)}, {'finished' if job.counts['finished'] else 'not finished'}"


def _scores(result: DemoStepResult) -> list[Object]:
    return [obj for obj in result.objects if obj["kind"] == "AddOnPlacementScore"]


def _score_row(obj: Object) -> tuple[str, str]:
    values = {entry["name"]: str(entry["value"]) for entry in (obj.get("status") or {}).get("scores") or ()}
    return obj["metadata"]["namespace"], values.get("gpuFree", NONE)


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def step_summary(result: DemoStepResult) -> str:
    """Return whether the step succeeded and how long it took."""
    took = f"{result.elapsed_ms:.0f} ms"
    if result.reaction_ms is not None:
        took += f", of which {result.reaction_ms:.0f} ms from OCM's decision to the MultiKueueConfig"
    return (
        f"OK after {took}" if result.succeeded else f"FAILED after {took}; expected {_expected(result.step)}"
    )


def _expected(step: StoryStep) -> str:
    """Return the expected state of a step as text."""
    parts = [str(step.expected_clusters)] if step.clusters is not None else []
    if step.draining:
        parts.append(f"{step.draining} draining")
    if step.job:
        where = " and ".join(step.job.runs_on or ()) or "nowhere"
        parts += [f"the job on {where}"] if step.job.runs_on is not None else []
        parts += ["the job finished"] if step.job.finished else []
        parts += ["no cluster fits"] if step.job.fits_nowhere else []
        parts += [f"counted {_compact(step.job.counts)}"] if step.job.counts else []
    if step.credentials_for is not None:
        parts.append(
            f"credentials for {enumeration(step.credentials_for, 'and')} only"
            if step.credentials_for
            else "no credentials"
        )
    parts += [f"a new token for {step.renewed}"] if step.renewed else []
    parts += [f"gpuFree {_compact(step.scores)}"] if step.scores else []
    return ", ".join(parts)


def summary(results: Sequence[DemoStepResult]) -> str:
    """Return how many steps succeeded, and the total time."""
    succeeded = sum(result.succeeded for result in results)
    seconds = sum(result.elapsed_ms for result in results) / 1000
    return f"{succeeded} of {len(results)} steps succeeded in {seconds:.1f} s."


def columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield rows with aligned columns, three spaces apart, as kubectl prints them."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _split(objects: Sequence[Object]) -> tuple[Object | None, list[Object]]:
    configs = [obj for obj in objects if obj["kind"] == "MultiKueueConfig"]
    return (configs[0] if configs else None), [obj for obj in objects if obj["kind"] == "MultiKueueCluster"]


def _row(cluster: Object) -> tuple[str, ...]:
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    connected = next((c["status"] for c in conditions if c["type"] == "Active"), NONE)
    source = cluster["spec"]["clusterSource"]
    secret = source.get("kubeConfig", {}).get("location", NONE)
    profile = source.get("clusterProfileRef", {}).get("name", NONE)
    return cluster["metadata"]["name"], connected, secret, profile


def _workloads(job: JobStatus) -> list[Object]:
    return [obj for obj in job.objects if obj["kind"] == "Workload"]


def _job_row(workload: Object, check: str) -> tuple[str, ...]:
    status = workload.get("status") or {}
    states = (
        admission_check["state"]
        for admission_check in status.get("admissionChecks") or ()
        if admission_check["name"] == check
    )
    done = (
        condition["status"] for condition in status.get("conditions") or () if condition["type"] == "Finished"
    )
    owner = workload["metadata"]["ownerReferences"][0]["name"]
    return owner, status.get("clusterName", NONE), next(states, NONE), next(done, NONE)


def _narrow_row(cluster: Object) -> tuple[str, str, str]:
    """Return a row that fits into 80 columns: Secret and ClusterProfile share one."""
    name, connected, secret, profile = _row(cluster)
    source = f"Secret {secret}" if secret != NONE else f"ClusterProfile {profile}"
    return name, connected, source


def _narrow_credential_lines(credentials: ProvisionedCredentials) -> Iterable[str]:
    objects = created_by_controller(credentials.objects)
    kinds = dict.fromkeys(obj["kind"] for obj in objects)
    for kind in kinds:
        names = (
            f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            for obj in objects
            if obj["kind"] == kind
        )
        yield f"{kind}: {', '.join(names)}"
    yield f"In the kubeconfigs: {token_summary(credentials)}"
    yield f"On the workers: {worker_summary(credentials)}"


class TerminalRenderer:
    """Shows finished steps as panels in a terminal, with the current step below; a context manager."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=12)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(Text(""))
        self._live.stop()

    def step_started(self, number: int, step: StoryStep) -> None:
        self._live.update(Group(self._title(number, step), Spinner("dots", text="…"), fit=True))

    def step_finished(self, result: DemoStepResult) -> None:
        self._live.console.print(self._panel(result))
        self._live.update(Text(""))

    def demo_finished(self, results: Sequence[DemoStepResult], job_results: Sequence[JobResult] = ()) -> None:
        for job_result in job_results:
            style = "green" if job_result.succeeded else "bold red"
            self._live.console.print(Text(job_summary(job_result), style=style))
        style = "green" if all(result.succeeded for result in results) else "bold red"
        self._live.console.print(Text(summary(results), style=style))

    def _title(self, number: int, step: StoryStep) -> Text:
        return Text(f"Story {step.story}, step {number}: {step.title}", style="bold")

    def _panel(self, result: DemoStepResult) -> RenderableType:
        return Panel(
            Group(
                Text("\n".join(result.step.commands), style="dim"),
                *_state(result),
                Text(step_summary(result), style="green" if result.succeeded else "bold red"),
            ),
            title=self._title(result.number, result.step),
            title_align="left",
            border_style="green" if result.succeeded else "red",
        )


def _state(result: DemoStepResult) -> Iterable[RenderableType]:
    if result.job and result.choice:
        return _chosen(result.job, result.choice)
    return _list(result)


def _list(result: DemoStepResult) -> Iterable[RenderableType]:
    """Yield the list, the check, and the job, credentials and scores if the step expects any."""
    name, condition = result.step.placement, result.condition
    config, clusters = _split(result.objects)
    listed = ", ".join(config["spec"]["clusters"]) if config else "(none)"
    yield Text(f"\nMultiKueueConfig {name}: {listed}", style="bold")
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for head in ("MULTIKUEUECLUSTER", "CONNECTED", "CREDENTIALS"):
        table.add_column(head, overflow="fold")
    for cluster in clusters:
        table.add_row(*_narrow_row(cluster))
    yield table
    active = f"Active={condition.get('status')}  {condition.get('reason')}: {condition.get('message')}"
    yield Text(f"AdmissionCheck {name}: {active if condition else '(none)'}")
    if result.job:
        yield Text(f"Job on the workers: {job_on_workers(result.job)}", style="bold")
    if result.credentials:
        yield from map(Text, _narrow_credential_lines(result.credentials))
    if result.step.scores:
        free = (f"{cluster} {value}" for cluster, value in map(_score_row, _scores(result)))
        yield Text(f"gpuFree: {', '.join(free)}")


def _chosen(job: JobStatus, choice: PlacementChoice) -> Iterable[RenderableType]:
    """Yield a job for which our dispatcher nominates, and why it goes where it does."""
    yield Text(f"\nJob on the workers: {job_on_workers(job)}", style="bold")
    head, *clusters = choice_lines(choice)
    yield Text(f"Why: {head}")
    yield from (Text(f"  {line}") for line in clusters)
