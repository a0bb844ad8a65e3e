"""Each claim of the documents about time, size, rights and secrets has its tests in claims.yaml."""

from pathlib import Path
from typing import Final

import pytest
import yaml

from bench import flips
from kubectl_placement.capacity import views
from kubectl_placement.cli import timeline_recorder, ui_feed, worker_options
from kubectl_placement.graph import model
from kubectl_placement.hub import controller_state
from kubectl_placement.readers import hub_reader, worker_inspector
from kubectl_placement.scheduling import cel_budget
from placement_ac.controller import (
    capacity_reporter,
    event_queue,
    event_writer,
    lease,
    recorder,
    session,
    start_forecasts,
    write_limits,
)
from placement_ac.core.api import constants
from placement_ac.core.capacity_report import changes
from placement_ac.core.expected_start import estimate
from placement_ac.core.inputs import queue_facts
from placement_ac.core.plan import event_intents, fact_questions
from placement_ac.core.selection import probe_schedule, provisioned
from placement_ac.kube import budget, client, informer, login, responses
from placement_ac.observability import health
from placement_ac.workers import connector
from placement_lab.cli import demo
from placement_lab.demo import environment
from placement_lab.standins.multikueue import KueueSettings
from tests.chaos import play
from tests.support.claims import Evidence, entries, on_one_line, unproven
from tests.support.documents import README, ROOT, exists
from tests.support.translations import TRANSLATED

COMPARED: Final = {ROOT / "docs" / "zh" / name for name in TRANSLATED}
"""Pages in Chinese: tests/website/test_chinese.py compares their numbers with the pages in English."""
PAGES: Final = (README, *sorted({*ROOT.glob("docs/**/*.md")} - COMPARED))
CLAIMS: Final = entries(yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text("utf-8")))
WITHOUT_CLAIMS: Final = {
    "docs/getting-started/hub.md": "steps; what they rely on is claimed on the pages that they link",
    "docs/getting-started/kind.md": "steps, for tools of others",
    "docs/zh/getting-started.md": "claims nothing that the pages in English do not claim",
}
"""The pages without an entry in claims.yaml, each with its reason."""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_claim_has_its_test(page: Path) -> None:
    name = name_of(page)
    proven = [part for entry in CLAIMS if entry.page == name for part in entry.claims]
    missing = [
        f"{name}:{claim.line}: “{claim.what}” in “{claim.sentence}”"
        for claim in unproven(page.read_text("utf-8"), proven)
    ]
    assert missing == [], "name its test in tests/docs/claims.yaml, or write the sentence without the number"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_claim_of_the_file_stands_in_its_page_once(page: Path) -> None:
    text = on_one_line(page.read_text("utf-8"))
    claims = [part for entry in CLAIMS if entry.page == name_of(page) for part in entry.claims]
    assert {part: text.count(part) for part in claims} == dict.fromkeys(claims, 1)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_has_a_comment(page: Path) -> None:
    assert "<!--" not in page.read_text("utf-8"), "name tests in tests/docs/claims.yaml"


def test_every_page_has_claims() -> None:
    assert {name_of(page) for page in PAGES} - {entry.page for entry in CLAIMS} == set(WITHOUT_CLAIMS)
    assert {entry.page for entry in CLAIMS} - {name_of(page) for page in PAGES} == set()


@pytest.mark.parametrize("kind", ["tests", "measured"])
def test_every_named_test_and_measurement_exists(kind: str) -> None:
    named = {(entry.page, name) for entry in CLAIMS for name in entry.names.get(kind, ())}
    assert {(page, name) for page, name in named if not exists(kind, name)} == set()


# -- constants in sentences: tests of behaviour mostly shorten them

IN_SENTENCES: Final = [
    ("develop/architecture", "start, after a gap and every minute", informer.KOPF_RELIST_SECONDS, 60),
    ("develop/architecture", "stays for two seconds while decisions and", constants.SETTLE_SECONDS, 2),
    ("develop/architecture", "for 0.25 s if there are several decisions", constants.REGROUP_SECONDS, 0.25),
    ("credentials", "have been unusable for 5 minutes", provisioned.USABLE_WITHIN_SECONDS, 300),
    ("credentials", "the first 22 in rank", constants.CLUSTERS_MAX + constants.SPARE_CLUSTERS, 22),
    ("credentials", "`workerLostTimeout` (15 min)", KueueSettings().worker_lost_seconds, 900),
    ("credentials", "probes the cluster every ten minutes", probe_schedule.GOOD_SECONDS, 600),
    ("credentials", "every 30 s while a problem lasts", probe_schedule.BAD_SECONDS, 30),
    ("credentials", "At most 2 MB are read of a page of a list", connector.MAX_PAGE_BYTES, 2e6),
    ("credentials", "and 200 KB of any other answer", connector.MAX_ANSWER_BYTES, 2e5),
    ("credentials", "question 10 MB, of a list", connector.MAX_TOTAL_BYTES, 1e7),
    ("credentials", "of a list of copies 100 MB", connector.MAX_COPIES_BYTES, 1e8),
    ("credentials", "of each list 200 pages", connector.MAX_PAGES, 200),
    ("credentials", "in four fifths of `--worker-timeout`", connector.LIST_FRACTION, 0.8),
    ("credentials", "answers of more than 16 KB", budget.SMALL_BYTES, 16_000),
    ("credentials", "must be whole after 3 s", budget.SLOT_SECONDS, 3),
    ("credentials", "is not asked again for 5 minutes", connector.TOO_LARGE_SECONDS, 300),
    ("draining", "`workerLostTimeout`, 15 min", KueueSettings().worker_lost_seconds, 900),
    ("draining", "`--unlist-after` (1 hour)", constants.UNLIST_AFTER_SECONDS, 3600),
    ("inspect", "at most twice a second", hub_reader.PAUSE_SECONDS, 0.5),
    ("inspect", "does not answer for about 20 seconds", round(sum(hub_reader.RETRY_SECONDS), -1), 20),
    ("inspect", "duration and 60 s more", controller_state.SKEW.total_seconds(), 60),
    ("inspect", "more than 50,000 steps on a cluster", cel_budget.STEPS, 50_000),
    ("inspect", "eight at a time", worker_inspector.CONCURRENT_WORKERS, 8),
    ("inspect", "With more than 40 clusters in a check", model.CLUSTERS_SHOWN, 40),
    ("inspect", "recorded within 20 ms", timeline_recorder.PAUSE_SECONDS, 0.02),
    ("develop/performance", "50 ms of it are a pause", ui_feed.PAUSE_SECONDS, 0.05),
    ("inspect", "and waits 4 s after each step", demo.UI_PAUSE.total_seconds(), 4),
    ("reference", "[default: 4s with --ui, or 0s]", demo.UI_PAUSE.total_seconds(), 4),
    ("monitoring", "undone within 30 seconds", write_limits.PACED_SECONDS, 30),
    ("develop/performance", "Jobs come at random for two minutes", flips.Row("AllAtOnce", 10).seconds, 120),
    ("develop/performance", "had not finished two minutes after", flips.Row("AllAtOnce", 10).patience, 120),
    ("reference", "may be written, all together, after a burst of 200", write_limits.BURST, 200),
    ("reference", "Ten writes of an object, and one a second after that", write_limits.FREE_WRITES, 10),
    (
        "reference",
        "may still be placed there before they are sent back; at least 15 s",
        constants.WAITING_GRACE_MIN_SECONDS,
        15,
    ),
    ("dispatch", "each at most every 15 s per Placement", fact_questions.FACTS_AGAIN_SECONDS, 15),
    ("dispatch", "A job waits up to 2 s for the first answer", fact_questions.FACTS_WAIT_SECONDS, 2),
    ("dispatch", "Answers older than 60 s do not count", queue_facts.FACTS_VALID_SECONDS, 60),
    ("dispatch", "does not answer within `--timeout` (5 s)", worker_options.WorkerOptions().timeout, 5),
    ("reference", "it warns when a tenth of their lifetime is left", event_intents.LAST_SHARE, 0.1),
    ("reference", "and every 30 seconds which lists are missing", session.STALLED_SECONDS, 30),
    ("reference", "disappear or expire for more than two seconds", constants.SETTLE_SECONDS, 2),
    (
        "reference",
        "With --workers: the timeout of each worker. [default: 5s]",
        worker_options.WorkerOptions().timeout,
        5,
    ),
    ("reference", "for the same reasons for three seconds", constants.UNUSABLE_SECONDS, 3),
    ("reference", "five times in a row, each time within 30 s", write_limits.UNDONE_MAX, 5),
    ("reference", "which is written every 30 s from then on", write_limits.PACED_SECONDS, 30),
    ("reference", "it names five clusters and counts the rest", event_intents.NAMES_SHOWN, 5),
    ("reference", "twenty of them get an event of their own", event_intents.WORKLOAD_EVENTS_MAX, 20),
    ("reference", "is counted up after ten minutes at the earliest", event_writer.REPEAT_SECONDS, 600),
    ("reference", "the count is posted after ten seconds", recorder.COUNT_SECONDS, 10),
    ("reference", "and so on up to five minutes", recorder.COUNT_MOST_SECONDS, 300),
    ("reference", "Twenty events are posted at once", recorder.AT_ONCE, 20),
    ("reference", "then fifty a second", recorder.PER_SECOND, 50),
    ("reference", "more than 500 events wait", event_queue.QUEUED, 500),
    ("reference", "failed with a TLS error for longer than a minute", health.TLS_FAILED_SECONDS, 60),
    ("reliability", "cancels those that take longer than 1.2 s", session.CLOSE_SECONDS, 1.2),
    ("reliability", "releases the Lease if that takes no longer than 1 s", lease.RELEASE_SECONDS, 1),
    ("develop/faults", "at most 60 seconds, and a leader", responses.MAX_RETRY_AFTER_SECONDS, 60),
    ("reliability", "are read again every 30 seconds while requests are sent", login.HEADERS_SECONDS, 30),
    ("reliability", "a second after a connection has failed", login.RENEW_SECONDS, 1),
    ("reliability", "a watch ends after 40 seconds at most", client.WATCH_SECONDS, 40),
    ("reliability", "and an idle connection after 15", login.KEEPALIVE_SECONDS, 15),
    ("reliability", "failed with a TLS error for a minute", health.TLS_FAILED_SECONDS, 60),
    ("reliability", "closed after at most 50 seconds", client.WATCH_IDLE_SECONDS, 50),
    ("reliability", "receives nothing for three minutes", health.REVIVE_SECONDS, 180),
    ("reliability", "`/healthz` fails after seven minutes", health.DEAD_SECONDS, 420),
    ("develop/faults", "that `/livez` answers within a second", play.BLOCKED_SECONDS, 1),
    ("develop/faults", "disagree for longer than 2 s", constants.SETTLE_SECONDS, 2),
    (
        "develop/faults",
        "also listed again every ten minutes, kopf's every minute",
        informer.RELIST_SECONDS,
        600,
    ),
    ("monitoring", "They take at most 2 % of a core", start_forecasts.CORE_SHARE, 0.02),
    ("monitoring", "for 5 ms at a time", start_forecasts.SLICE_SECONDS, 0.005),
    ("monitoring", "at a time and for 8 s at most", estimate.SIMULATION_SECONDS, 8),
    (
        "monitoring",
        "took more than 1.2 s",
        start_forecasts.LOOK_SECONDS * start_forecasts.CORE_SHARE,
        1.2,
    ),
    ("capacity", "writes both at most once a minute", capacity_reporter.WRITE_SECONDS, 60),
    ("capacity", "an answer is ten minutes newer", changes.AGE_STEP.total_seconds(), 600),
    ("capacity", "are old, of more than 15 minutes", views.OLD.total_seconds(), 900),
    ("stories", "is twenty times as fast as Kueue", environment.SPEED, 20),
    (
        "troubleshooting",
        "it opens after at most a minute and the grace period",
        constants.GATE_CLOSED_MAX_SECONDS,
        60,
    ),
]
"""Page in `docs/`, a part of a sentence, the constant, and the value that the sentence says."""


@pytest.mark.parametrize(
    ("page", "part", "constant", "written"), [pytest.param(*one, id=one[1][:40]) for one in IN_SENTENCES]
)
def test_the_sentence_has_the_constant(page: str, part: str, constant: float, written: float) -> None:
    assert part in " ".join((ROOT / "docs" / f"{page}.md").read_text("utf-8").split())
    assert constant == written


# -- the reader of claims


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("It takes 3 s.\n", ["3 s"], id="a paragraph"),
        pytest.param("It is proven\nthat it takes 3 s.\n", [], id="a proven paragraph"),
        pytest.param("It is\nproven.\n\nIt takes 3 s.\n", ["3 s"], id="the paragraph after it"),
        pytest.param("## It is proven\n\nIt takes 3 s.\n", ["3 s"], id="below a proven heading"),
        pytest.param("| a | b |\n|---|---|\n| 10 | 230 MB |\n", ["230 MB"], id="a table"),
        pytest.param(
            "| a | b |\n|---|---|\n| It is proven | x |\n| 10 | 230 MB |\n", [], id="a proven table"
        ),
        pytest.param(
            "1. a\n2. after half\n   an hour\n", ["half an hour"], id="a number in words, on two lines"
        ),
        pytest.param("`--settle` (`30s`)\n", ["30s"], id="in code"),
        pytest.param("```console\nOK after 116 ms\n```\n", [], id="in a fence"),
        pytest.param(
            "It starts a second copy, and 20 s of them... 5 clusters.\n", ["20 s"], id="no measures"
        ),
        pytest.param("A second later it opens.\n", ["A second"], id="a second"),
        pytest.param("The command writes\nnothing.\n", ["writes nothing"], id="a promise about rights"),
        pytest.param("No line contains a token.\n", ["No line contains"], id="a promise about secrets"),
    ],
)
def test_a_claim_without_a_test(text: str, found: list[str]) -> None:
    assert [claim.what for claim in unproven(text, ["It is proven"])] == found


def test_a_claim_is_reported_with_its_line_and_sentence() -> None:
    [claim] = unproven("# A\n\nSo it is. The list\nchanges within 3 s of that. More.\n", [])
    assert (claim.line, claim.sentence) == (4, "The list changes within 3 s of that")


def test_the_entries_of_the_file() -> None:
    written = {"a.md": [{"claims": ["3 s"], "tests": ["tests/a.py::test_b"], "measured": ["bench/c.py"]}]}
    names = {"tests": ("tests/a.py::test_b",), "measured": ("bench/c.py",)}
    assert entries(written) == [Evidence("a.md", ("3 s",), names)]


@pytest.mark.parametrize(
    "entry",
    [{"claims": ["a"]}, {"tests": ["a"]}, {"claims": [], "tests": ["a"]}, {"claims": ["a"], "test": ["b"]}],
)
def test_another_entry_is_an_error(entry: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match=r"a\.md: an entry needs claims"):
        entries({"a.md": [entry]})


@pytest.mark.parametrize(
    ("kind", "name", "is_there"),
    [
        ("tests", "tests/docs/test_claims.py::test_another_entry_is_an_error", True),
        ("tests", "tests/docs/test_claims.py", True),
        ("tests", "tests/docs/test_claims.py::test_nothing", False),
        ("tests", "tests/docs/test_nothing.py", False),
        ("tests", "bench/flips.py", False),
        ("measured", "bench/flips.py", True),
        ("measured", "bench/nothing.py", False),
    ],
)
def test_whether_a_test_or_benchmark_exists(kind: str, name: str, is_there: bool) -> None:
    assert exists(kind, name) is is_there
