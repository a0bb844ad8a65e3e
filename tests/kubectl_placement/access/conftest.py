"""The stage of the commands that reach a job on its cluster."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubectl_placement.access.stage import JobStage, job_stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[JobStage]:
    with job_stage(tmp_path) as opened:
        yield opened
