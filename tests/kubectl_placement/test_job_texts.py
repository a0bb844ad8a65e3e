"""The story of a job and the list of jobs on a terminal, as the documentation shows them."""

import io
from collections.abc import Iterable
from datetime import timedelta

from rich.console import Console, RenderableType

from kubectl_placement.cli.hub_options import HubReading
from kubectl_placement.cli.job_texts import story_texts
from kubectl_placement.cli.jobs import ListedJobs
from kubectl_placement.explain.workload import explain_workload
from kubectl_placement.hub.controller_settings import find_settings
from kubectl_placement.hub.hub_view import HubView
from kubectl_placement.story.lines import Wanted
from kubectl_placement.story.pods import PodRow, PodsThere
from kubectl_placement.story.tell import tell_story
from tests.kubectl_placement.test_explain_workload import BOTH, MK, PREFERRED, SELECTOR, P, a_job, view_of
from tests.kubectl_placement.test_story import condition, event
from tests.support.builders import NOW, Raw
from tests.support.documents import ROOT
from tests.support.jobs_to_dispatch import raw_job

PAGE = (ROOT / "docs" / "jobs.md").read_text("utf-8")
FULL = (
    "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a100, "
    "8 more needed"
)


def drawn(parts: Iterable[RenderableType]) -> str:
    out = Console(file=io.StringIO(), width=300, highlight=False, no_color=True)
    for part in parts:
        out.print(part)
    assert isinstance(out.file, io.StringIO)
    return "\n".join(line.rstrip() for line in out.file.getvalue().splitlines())


def at(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def owned(raw: Raw, name: str) -> Raw:
    """The Workload of a Job `name` that was created 12 minutes ago."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": f"Job {name}"}
    more = {"creationTimestamp": at(12), "ownerReferences": [owner]}
    return raw | {"metadata": raw["metadata"] | more}


def waiting() -> Raw:
    asks = {SELECTOR: "accelerator in (nvidia-h100)", PREFERRED: "1:accelerator=nvidia-h100"}
    raw = owned(a_job("job-train-5c0de", annotations=asks, nominated=[f"{P}-cluster2"]), "train")
    full = "waits for cluster2: 8 nvidia.com/gpu more are needed there"
    for entry in raw["status"]["admissionChecks"]:
        entry["lastTransitionTime"] = at(4.5)
        entry["message"] = full if entry["name"] == P else ""
    return raw


def running() -> Raw:
    states = {P: "Ready", MK: "Ready"}
    raw = owned(a_job("job-eval-77aa1", cluster=f"{P}-cluster3", **states), "eval")
    raw["status"]["conditions"].append(
        condition("PodsReady", "False", "WaitForStart", "Not all pods are ready", at(4))
    )
    return raw


def queued() -> Raw:
    raw = raw_job("job-tune-0f3c2", queue="user-queue-demo2", quota=False, since=NOW, **BOTH)
    raw["status"]["conditions"][0] |= {"message": FULL, "lastTransitionTime": at(11)}
    raw["status"]["admissionChecks"] = []
    return owned(raw, "tune")


def finished() -> Raw:
    raw = a_job("job-sweep-9d1e4", cluster=f"{P}-cluster2", finished=True, **{P: "Ready", MK: "Ready"})
    raw["status"]["conditions"][1] |= {"reason": "Succeeded", "message": "Job finished successfully"}
    return owned(raw, "sweep")


def hub() -> HubView:
    posted = event("Nominated", f"nominated to {P}-cluster2", at(4.4), waiting())
    posted["involvedObject"]["namespace"] = posted["metadata"]["namespace"] = "default"
    return view_of(waiting(), running(), queued(), finished(), posted)


def on_page(command: str, shown: str) -> bool:
    return f"$ {command}\n{shown}\n```" in PAGE


def test_the_list_of_jobs_in_the_documentation_is_what_is_shown() -> None:
    reading = HubReading(hub(), find_settings(hub().dump, {}, ""))
    shown = drawn(ListedJobs(reading, "default", Wanted()).table(wide=False))
    assert on_page("kubectl placement jobs", shown), shown


def test_the_story_of_a_job_that_waits_is_as_in_the_documentation() -> None:
    view, raw = hub(), waiting()
    shown = drawn(story_texts(tell_story(view, raw, None, explain_workload(view, raw)), NOW, wide=False))
    assert on_page("kubectl placement job train", shown), shown


def test_the_story_of_a_job_whose_pods_do_not_start_is_as_in_the_documentation() -> None:
    why = 'ImagePullBackOff: Back-off pulling image "registry.example/eval:v7"'
    pods = PodsThere("cluster3", (PodRow("eval-0-x7k2p", "Pending", "0/1", 0, "gpu-node-4", why),))
    shown = drawn(story_texts(tell_story(hub(), running(), pods), NOW, wide=False))
    assert on_page("kubectl placement job eval", shown), shown
