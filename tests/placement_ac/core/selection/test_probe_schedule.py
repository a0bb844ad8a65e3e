"""When a cluster is probed again: soon if there is anything to mend, else seldom."""

from dataclasses import replace

import pytest

from placement_ac.core.inputs.fitness import Fitness
from placement_ac.core.inputs.state import ProbeRequest, ProbeResult
from placement_ac.core.selection.probe_schedule import due_probes
from tests.support.decided import decided_inputs


@pytest.mark.parametrize(
    ("fitness", "seconds"),
    [
        pytest.param(Fitness(), 600.0, id="fit"),
        pytest.param(Fitness(problems=("no CRDs",)), 30.0, id="a problem"),
        pytest.param(Fitness(warnings=("no LocalQueue",)), 30.0, id="a warning"),
    ],
)
def test_how_long_a_result_counts(fitness: Fitness, seconds: float) -> None:
    seen = decided_inputs("a")
    source = seen.credentials.usable("a")
    assert source is not None
    for age, expected in (
        (seconds - 1.0, ((), 1.0)),
        (seconds, ((ProbeRequest("a", source),), None)),
    ):
        results = {"a": ProbeResult(fitness, source, source.version, age)}
        assert due_probes(replace(seen, fleet=replace(seen.fleet, probe_results=results))) == expected
