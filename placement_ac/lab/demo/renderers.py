"""
Ways to show a step: a terminal for people, plain lines, JSON documents for programs.
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

from placement_ac.core.api.constants import LABEL_MANAGED_BY, LABEL_PLACEMENT, MANAGED_BY
from placement_ac.kube.client import Object
from placement_ac.lab.demo.credentials import MadeSeen, labelled
from placement_ac.lab.demo.runner import Finale, Outcome
from placement_ac.lab.demo.steps import Step
from placement_ac.lab.demo.viewer import JobSeen

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

MADE_HEADS: Final = ("KIND", "NAMESPACE", "NAME")
MADE: Final = (
    f"kubectl get managedserviceaccounts,clusterpermissions,secrets -A -l {LABEL_MANAGED_BY}={MANAGED_BY} "
    "-o custom-columns='KIND:.kind,NAMESPACE:.metadata.namespace,NAME:.metadata.name'"
)


class JsonShow:
    """One JSON document per step, a line each; where a job was shown, one more that tells how it ended."""

    def begins(self, number: int, step: Step) -> None:
        """A program waits for what comes out."""

    def ends(self, outcome: Outcome) -> None:
        click.echo(json.dumps(document(outcome)))

    def is_over(self, outcomes: Sequence[Outcome], finale: Finale | None = None) -> None:
        """Each document has told how its step went."""
        if finale:
            click.echo(json.dumps(last_document(outcomes, finale)))


def document(outcome: Outcome) -> dict[str, Any]:
    """Return the JSON document of a step: step, objects, condition, elapsed milliseconds."""
    made = {"credentials": _of_credentials(outcome.made)} if outcome.made else {}
    return {
        "step": outcome.number,
        "story": outcome.step.story,
        "title": outcome.step.title,
        "done": list(outcome.step.done),
        "ok": outcome.right,
        "elapsedMilliseconds": round(outcome.elapsed, 1),
        "reactionMilliseconds": None if outcome.reaction is None else round(outcome.reaction, 1),
        "decision": list(outcome.decided),
        "objects": list(outcome.objects),
        "condition": outcome.condition,
    } | made


def _of_credentials(made: MadeSeen) -> dict[str, list[str]]:
    return {"current": list(made.current), "renewed": list(made.renewed), "workers": made.on_workers}


def last_document(outcomes: Sequence[Outcome], finale: Finale) -> dict[str, Any]:
    """Return the JSON document of the end: what the workers counted of each job, and whether all is right."""
    return {
        "jobs": {finale.job.name: finale.job.account},
        "ok": finale.right and all(outcome.right for outcome in outcomes),
        "told": told_of(finale),
    }


class PlainShow:
    """Lines of text, for a pipe or a log."""

    def begins(self, number: int, step: Step) -> None:
        click.echo(f"Story {step.story}, step {number}: {step.title}")
        for line in step.done:
            click.echo(f"  $ {line}" if line.startswith(("kubectl", "sed")) else f"  # {line}")

    def ends(self, outcome: Outcome) -> None:
        for line in result_lines(outcome):
            click.echo(f"  {line}")
        click.echo(f"  {verdict(outcome)}\n")

    def is_over(self, outcomes: Sequence[Outcome], finale: Finale | None = None) -> None:
        if finale:
            click.echo(told_of(finale))
        click.echo(summary(outcomes))


def result_lines(outcome: Outcome) -> Iterable[str]:
    """Yield what came out as kubectl would print it."""
    name = outcome.step.placement
    config, clusters = _split(outcome.objects)
    yield f"$ kubectl get multikueueconfig {name} -o jsonpath='{{.spec.clusters}}'"
    yield _compact(config["spec"]["clusters"]) if config else "Error from server (NotFound)"
    yield f"$ kubectl get multikueueclusters -l {LABEL_PLACEMENT}={name} -o custom-columns='{CUSTOM_COLUMNS}'"
    yield from columns([HEADS, *map(_row, clusters)])
    yield f'$ kubectl get admissioncheck {name} -o jsonpath="{CONDITION}"'
    condition = outcome.condition
    yield " ".join(str(condition.get(key, "")) for key in ("status", "reason", "message")).strip() or "(none)"
    if outcome.job:
        yield from job_lines(outcome.job, name)
    if outcome.made:
        yield from made_lines(outcome.made)


def job_lines(job: JobSeen, check: str) -> Iterable[str]:
    """Yield what is to be seen of a job: on the hub, as kubectl would print it, and on the workers."""
    yield f"$ kubectl get workloads -o custom-columns='{JOB_COLUMNS.format(check)}'"
    yield from columns([JOB_HEADS, *(_job_row(obj, check) for obj in _workloads(job))])
    yield f"# on the workers: {on_the_workers(job)}"


def made_lines(made: MadeSeen) -> Iterable[str]:
    """Yield what is there of credentials that are made: on the hub, as kubectl would print it, and beyond."""
    yield f"$ {MADE}"
    rows = [
        (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]) for obj in labelled(made.objects)
    ]
    yield from columns([MADE_HEADS, *rows])
    yield f"# in the kubeconfigs: {tokens_told(made)}"
    yield f"# on the workers: {grants_told(made)}"


def tokens_told(made: MadeSeen) -> str:
    """Return whose kubeconfig has the token that OCM has reported last, and which of these are new."""
    if not made.current:
        return "no token"
    renewed = f"; renewed: {' and '.join(made.renewed)}" if made.renewed else ""
    return f"the token that OCM has reported last, for {_enumerated(made.current)}{renewed}"


def grants_told(made: MadeSeen) -> str:
    """Return which workers hold what was made there."""
    workers = made.on_workers
    return f"accounts and rights on {_enumerated(workers)}" if workers else "nothing"


def _enumerated(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def on_the_workers(job: JobSeen) -> str:
    """Return where a job runs and has run, by the workers' own count."""
    where = f"runs on {' and '.join(job.runs_on)}" if job.runs_on else "runs nowhere"
    return f"{job.name} {where}; {counted(job)}"


def counted(job: JobSeen) -> str:
    """Return how often it was started, and how many copies there were at once."""
    starts, most = job.account["starts"], job.account["maxCopies"]
    started = f"started {starts} time{'' if starts == 1 else 's'}"
    return f"{started}, {'never more than 1 copy' if most <= 1 else f'{most} copies'} at a time"


def told_of(finale: Finale) -> str:
    """Return how it ended for the job, and what that shows."""
    finished = "finished" if finale.job.account["finished"] else "not finished"
    told = f"Job {finale.job.name}: {counted(finale.job)}, {finished}"
    if finale.right:
        return f"{told}: {finale.ending.moral}."
    return f"{told}: NOT RIGHT; wanted {_compact(finale.ending.wanted)}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def verdict(outcome: Outcome) -> str:
    """Return how it went and how long it took."""
    took = f"in {outcome.elapsed:.0f} ms"
    if outcome.reaction is not None:
        took += f", {outcome.reaction:.0f} ms of them from OCM's decision to the MultiKueueConfig"
    return f"right, {took}" if outcome.right else f"NOT RIGHT, {took}; wanted {_wish(outcome.step)}"


def _wish(step: Step) -> str:
    """Return what should have come of a step."""
    parts = [str(step.wanted)] if step.clusters is not None else []
    if step.draining:
        parts.append(f"{step.draining} draining")
    if step.job:
        where = " and ".join(step.job.runs_on or ()) or "nowhere"
        parts += [f"the job on {where}"] if step.job.runs_on is not None else []
        parts += ["the job finished"] if step.job.finished else []
    if step.made is not None:
        parts.append(f"credentials for {_enumerated(step.made)} alone" if step.made else "nothing left")
    parts += [f"a new token for {step.renewed}"] if step.renewed else []
    return ", ".join(parts)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return how all of it went."""
    right = sum(outcome.right for outcome in outcomes)
    seconds = sum(outcome.elapsed for outcome in outcomes) / 1000
    return f"{right} of {len(outcomes)} steps came out right, in {seconds:.1f} s."


def columns(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    """Yield rows with aligned columns, three spaces apart, as kubectl has them."""
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


def _workloads(job: JobSeen) -> list[Object]:
    return [obj for obj in job.objects if obj["kind"] == "Workload"]


def _job_row(workload: Object, check: str) -> tuple[str, ...]:
    status = workload.get("status") or {}
    states = (one["state"] for one in status.get("admissionChecks") or () if one["name"] == check)
    done = (one["status"] for one in status.get("conditions") or () if one["type"] == "Finished")
    owner = workload["metadata"]["ownerReferences"][0]["name"]
    return owner, status.get("clusterName", NONE), next(states, NONE), next(done, NONE)


def _narrow_row(cluster: Object) -> tuple[str, str, str]:
    """Return a row that fits into 80 columns: Secret and ClusterProfile share one."""
    name, connected, secret, profile = _row(cluster)
    way = f"Secret {secret}" if secret != NONE else f"ClusterProfile {profile}"
    return name, connected, way


def _narrow_made(made: MadeSeen) -> Iterable[str]:
    objects = labelled(made.objects)
    kinds = dict.fromkeys(obj["kind"] for obj in objects)
    for kind in kinds:
        names = (
            f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
            for obj in objects
            if obj["kind"] == kind
        )
        yield f"{kind}: {', '.join(names)}"
    yield f"In the kubeconfigs: {tokens_told(made)}"
    yield f"On the workers: {grants_told(made)}"


class LiveShow:
    """A terminal: what happens now below what has happened. `with` it."""

    def __init__(self, console: Console) -> None:
        self._live = Live(console=console, refresh_per_second=12)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.update(Text(""))
        self._live.stop()

    def begins(self, number: int, step: Step) -> None:
        self._live.update(Group(self._title(number, step), Spinner("dots", text="…"), fit=True))

    def ends(self, outcome: Outcome) -> None:
        self._live.console.print(self._panel(outcome))
        self._live.update(Text(""))

    def is_over(self, outcomes: Sequence[Outcome], finale: Finale | None = None) -> None:
        if finale:
            style = "green" if finale.right else "bold red"
            self._live.console.print(Text(told_of(finale), style=style))
        style = "green" if all(outcome.right for outcome in outcomes) else "bold red"
        self._live.console.print(Text(summary(outcomes), style=style))

    def _title(self, number: int, step: Step) -> Text:
        return Text(f"Story {step.story}, step {number}: {step.title}", style="bold")

    def _panel(self, outcome: Outcome) -> RenderableType:
        config, clusters = _split(outcome.objects)
        done = Text("\n".join(outcome.step.done), style="dim")
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
        for head in ("MULTIKUEUECLUSTER", "CONNECTED", "CREDENTIALS"):
            table.add_column(head, overflow="fold")
        for cluster in clusters:
            table.add_row(*_narrow_row(cluster))
        listed = ", ".join(config["spec"]["clusters"]) if config else "(none)"
        condition = outcome.condition
        told = f"Active={condition.get('status')}  {condition.get('reason')}: {condition.get('message')}"
        told = told if condition else "(none)"
        job = (
            [Text(f"Job on the workers: {on_the_workers(outcome.job)}", style="bold")] if outcome.job else []
        )
        made = [Text(line) for line in _narrow_made(outcome.made)] if outcome.made else []
        return Panel(
            Group(
                done,
                Text(f"\nMultiKueueConfig {outcome.step.placement}: {listed}", style="bold"),
                table,
                Text(f"AdmissionCheck {outcome.step.placement}: {told}"),
                *job,
                *made,
                Text(verdict(outcome), style="green" if outcome.right else "bold red"),
            ),
            title=self._title(outcome.number, outcome.step),
            title_align="left",
            border_style="green" if outcome.right else "red",
        )
