"""A Workload that is written is compared with what was seen as the cache has read it."""

import asyncio

from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.plan.diff import SetCheckStates
from placement_ac.kube.client import Client
from tests.support.admin import login_to
from tests.support.driver import Driver
from tests.support.jobs import WORKLOADS, has_quota

JOB = f"{WORKLOADS}/job"


def test_an_annotation_that_changes_is_no_conflict_for_a_job_that_names_an_object(admin: Driver) -> None:
    has_quota(admin, "job", "p", "mk")
    pod = {"spec": {"containers": [], "serviceAccountName": "trainer"}}
    admin.ask("PATCH", JOB, {"spec": {"podSets": [{"name": "main", "count": 1, "template": pod}]}}, "merge")
    raw = admin.ask("GET", JOB)
    assert workload_with_job(raw).job.references
    seen = workload_with_job(raw, with_references=False)
    admin.ask("PATCH", JOB, {"metadata": {"annotations": {"team": "a"}}}, "merge")
    entry = {"name": "p", "state": "Ready", "message": "", "lastTransitionTime": "2026-11-26T10:00:00Z"}
    action = SetCheckStates(seen, (entry,))

    async def write() -> None:
        async with Client(login_to(admin.hub)) as client:
            served = {WORKLOAD: WORKLOAD.at("v1beta2")}
            await Writer(client, served, lambda *_: None, with_references=False).execute([(action,)])

    asyncio.run(write())
    states = {one["name"]: one["state"] for one in admin.ask("GET", JOB)["status"]["admissionChecks"]}
    assert states["p"] == "Ready"
