"""Asking workers whether they are fit: what may not be asked, and what goes wrong."""

import pytest

from placement_ac.core.inputs.fitness import Fitness
from placement_ac.observability import logs
from tests.support.driver import NS, Driver
from tests.support.exec_plugins import TOKEN
from tests.support.probing import NO_RELEASE, NOW, QUEUES, REFUSED, REVIEWS, ask, requests_to, unfit
from tests.support.workers import ECHO, Raw, put_secret


@pytest.mark.parametrize(
    ("path", "body", "sent", "requests"),
    [
        pytest.param(
            "/apis/kueue.x-k8s.io$",
            {"versions": [{"version": f"v{number}"} for number in range(1, 22)]},
            "more than 20 versions of an API group",
            1,
            id="versions",
        ),
        pytest.param(
            "/apis/kueue.x-k8s.io/v1beta2$",
            {"resources": [{"name": f"kind{number}"} for number in range(501)]},
            "more than 500 kinds in an API version",
            3,
            id="kinds",
        ),
    ],
)
def test_discovery_without_end_is_beyond_the_budget(
    admin: Driver, worker: Driver, path: str, body: Raw, sent: str, requests: int
) -> None:
    put_secret(admin, worker)
    worker.hub.faults.add("GET", path, status=200, body=body, times=100)
    before = requests_to(worker)
    answer = ask(admin)
    why = f"the worker of Secret {NS}/s sends {sent}: it is asked again after 5 min"
    assert (answer, requests_to(worker) - before) == (unfit(why), requests)


def test_a_secret_that_is_not_there_or_unusable(admin: Driver, worker: Driver) -> None:
    assert ask(admin) == unfit(f"Secret {NS}/s does not exist")
    put_secret(admin, worker, server=f"https://user:{TOKEN}@127.0.0.1:{worker.hub.port}")
    (problem,) = ask(admin).problems
    assert problem.startswith(f"in Secret {NS}/s, remove the user name from server")
    assert requests_to(worker) == 0


def test_a_worker_that_is_away(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    with worker.hub.outage():
        assert ask(admin) == unfit(f"the worker of Secret {NS}/s cannot be reached: Connection refused")


def test_a_worker_that_never_answers(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, server=silent)
    assert ask(admin, timeout=0.3) == unfit("the worker did not answer all that it was asked within 0.3 s")


@pytest.mark.parametrize(
    ("path", "fault", "expected_result"),
    [
        pytest.param(
            "apis/kueue.x-k8s.io$",
            {"status": 403},
            unfit(f"{REFUSED} read /apis/kueue.x-k8s.io"),
            id="no discovery",
        ),
        pytest.param(
            "apis/kueue.x-k8s.io$",
            {"status": 200, "body": {"kind": TOKEN}},
            unfit(f"what the worker of Secret {NS}/s answered has another shape than Kubernetes'"),
            id="another server",
        ),
        pytest.param(
            "apis/kueue.x-k8s.io$",
            {"status": 200, "body": {"versions": [{"version": f"../{TOKEN}"}]}},
            Fitness(
                ("install Kueue on the worker: it serves no Workloads",), unknown=(NO_RELEASE,), asked_at=NOW
            ),
            id="a version that is none",
        ),
        pytest.param(
            "apis/batch/v1$",
            {"status": 503},
            Fitness(
                unknown=("the kinds of batch are not known: the worker answered with HTTP 503", NO_RELEASE),
                asked_at=NOW,
            ),
            id="one version fails",
        ),
        pytest.param(
            REVIEWS,
            {"status": 403, "times": 3},
            Fitness(
                unknown=(f"3 of 3 rights are not known: {REFUSED} ask for its own rights", NO_RELEASE),
                asked_at=NOW,
            ),
            id="no reviews",
        ),
        pytest.param(
            REVIEWS,
            {"hang_up": True},
            unfit(f"the worker of Secret {NS}/s cannot be reached: ServerDisconnectedError"),
            id="hangs up on the way",
        ),
    ],
)
def test_an_error_of_a_worker_is_reported(
    admin: Driver,
    worker: Driver,
    capfd: pytest.CaptureFixture[str],
    path: str,
    fault: Raw,
    expected_result: Fitness,
) -> None:
    logs.configure("json", "debug")
    put_secret(admin, worker)
    worker.hub.faults.add(path=path, **{"body": ECHO, "times": 2} | fault)
    assert ask(admin) == expected_result
    assert TOKEN not in "".join(capfd.readouterr())


def test_no_worker_is_unfit_because_it_does_not_tell_its_localqueues(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    worker.namespace("team")
    worker.hub.faults.add("GET", "/localqueues", times=2, body=ECHO, status=500)
    answer = ask(admin, queues=QUEUES)
    assert (answer.problems, answer.warnings) == ((), ())
    assert "its LocalQueues are not known: the worker answered with HTTP 500" in answer.unknown
