"""The fault table in docs/develop/faults.md lists the tested faults and the measured figures."""

import re
from pathlib import Path

from tests.placement_ac.controller.faults import plays, test_faults, test_kills
from tests.support.documents import ROOT, table

FAULTS = ROOT / "docs" / "develop" / "faults.md"


def test_every_fault_has_its_row_and_every_row_its_test() -> None:
    rows = [row for row in table(FAULTS, "Injected faults") if not row[-1].endswith(".py")]  # no plays
    tested = [f"{test_faults.test_fault.__name__}[{fault.name}]" for fault in plays.FAULTS]
    assert [row[-1] for row in rows] == [*tested, test_kills.test_kill_9.__name__]
    assert [row for row in rows if not re.match(r"\d+\.\d s", row[2])] == []
    assert [row for row in rows[:-1] if not row[3].isdecimal()] == []


def test_the_files_of_the_tests_are_named() -> None:
    text = FAULTS.read_text("utf-8")
    for module in (test_faults, test_kills):
        assert str(Path(module.__file__ or "").relative_to(ROOT)) in text
