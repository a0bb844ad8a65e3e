"""Deactivating a job that has given up: one field, and only if nothing has changed since."""

import asyncio

import pytest

from placement_ac.controller.writer import Writer
from placement_ac.core.api.constants import WORKLOAD
from placement_ac.core.api.decode import workload_with_job
from placement_ac.core.api.errors import WorkloadWritesFailed
from placement_ac.core.plan.diff import Deactivate
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from tests.support.admin import login_to
from tests.support.driver import Driver, Object
from tests.support.jobs import WORKLOADS, has_quota, is_admitted_on

JOB = f"{WORKLOADS}/job"


def deactivate(admin: Driver, path: str, login: Login, seen: Object | None = None) -> None:
    """Deactivate a Workload as the controller does, as it was `seen`. Raises WorkloadWritesFailed."""
    action = Deactivate(workload_with_job(seen or admin.ask("GET", path)), "it has waited for long")

    async def write() -> None:
        async with Client(login) as client:
            await Writer(client, {WORKLOAD: WORKLOAD.at("v1beta2")}, lambda *_: None).execute([(action,)])

    asyncio.run(write())


def test_only_the_field_active_is_written(admin: Driver) -> None:
    before = has_quota(admin, "job", "p", "mk")
    deactivate(admin, JOB, login_to(admin.hub))
    after = admin.ask("GET", JOB)
    assert after["spec"] == before["spec"] | {"active": False}
    assert after["status"] == before["status"]


def test_a_job_that_was_placed_meanwhile_is_not_deactivated(admin: Driver) -> None:
    seen = has_quota(admin, "job", "p", "mk")
    is_admitted_on(admin, "job", "p-a")
    with pytest.raises(WorkloadWritesFailed):
        deactivate(admin, JOB, login_to(admin.hub), seen)
    assert admin.ask("GET", JOB)["spec"].get("active", True)
