"""Asking workers whether they are fit: what is found, what may not be asked, who keeps nobody waiting."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from placement_ac.core.api.constants import SECRET
from placement_ac.core.inputs.fitness import Fitness, WorkerRequirements
from placement_ac.core.inputs.rights import (
    FRAMEWORKS,
    JobKind,
    Right,
    job_kinds,
    parse_external,
    policy_rules,
    required_rights,
)
from placement_ac.core.kubeconfig.source import ClusterAccess, CredentialSource
from placement_ac.kube.client import Client
from placement_ac.kube.login import Login
from placement_ac.observability import logs
from placement_ac.workers.connector import WorkerConnector
from placement_ac.workers.probe import Probe
from placement_lab.hub import Hub
from tests.support.crds import plain_crd
from tests.support.driver import CORE, NS, Driver
from tests.support.shared import published_crds

Raw = dict[str, Any]
Queues = Mapping[str, frozenset[str]]
TOKEN = "SeCrEt-42"
LIMITED = "SeCrEt-43"
NOW = datetime(2026, 8, 1, tzinfo=UTC)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REVIEWS = "selfsubjectaccessreviews"
JOBS = JobKind("batch/job", "batch", "jobs", "v1")
JOBSETS = JobKind("jobset.x-k8s.io/jobset", "jobset.x-k8s.io", "jobsets", "v1")
PODS = JobKind("pod", "", "secrets", "v1")
"""A kind of the core group: the hub that plays the worker has no Pods."""
WATCH = Right("kueue.x-k8s.io", "workloads", "", "watch")
STATUS = Right("kueue.x-k8s.io", "workloads", "status", "patch")
CREATE = Right("batch", "jobs", "", "create")
NEEDS = WorkerRequirements("v1beta2", (JOBS, PODS), (WATCH, STATUS, CREATE))
NO_RELEASE = "Kueue's version is not known: the worker answered with HTTP 404"
REFUSED = f"the worker does not let the account of Secret {NS}/s"
FIT = Fitness(unknown=(NO_RELEASE,), asked_at=NOW)
QUEUES: Queues = {"team": frozenset({"q", "r"})}
SOURCE = CredentialSource("Secret", "s")


def crds(*kinds: str, versions: tuple[str, ...] = ()) -> list[Raw]:
    """The published CRDs of these kinds of Kueue, in all their versions or in those alone."""
    found = [crd for crd in published_crds() if crd["spec"]["names"]["kind"] in kinds]
    return [_only(crd, versions) if versions else crd for crd in found]


def _only(crd: Raw, names: tuple[str, ...]) -> Raw:
    kept = [version for version in crd["spec"]["versions"] if version["name"] in names]
    return crd | {"spec": crd["spec"] | {"versions": [*kept[:-1], kept[-1] | {"storage": True}]}}


@contextmanager
def serving(*, kinds: list[Raw] | None = None) -> Iterator[Driver]:
    kueue = crds("Workload", "LocalQueue") if kinds is None else kinds
    with Hub(token=TOKEN, crds=kueue) as hub, Driver(hub) as driver:
        hub.add_user("limited", LIMITED, groups=())
        yield driver


@pytest.fixture
def worker() -> Iterator[Driver]:
    with serving() as driver:
        yield driver


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def put_secret(admin: Driver, worker: Driver, name: str = "s", token: str = TOKEN, **cluster: Any) -> None:
    """A Secret with a kubeconfig of that worker, new or changed."""
    content = worker.hub.kubeconfig()
    content["users"][0]["user"] = {"token": token}
    content["clusters"][0]["cluster"] |= cluster
    data = {"kubeconfig": base64.b64encode(json.dumps(content).encode()).decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
    admin.ask("PATCH", f"{CORE}/namespaces/{NS}/secrets/{name}", body, "apply", force="true")


def grant(worker: Driver, *rules: Raw) -> None:
    """Let the account of the token LIMITED do that, and nothing else."""
    name = {"metadata": {"name": "limited"}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
    worker.ask("POST", f"{RBAC}/clusterroles", name | {"rules": list(rules)})
    worker.ask("POST", f"{RBAC}/clusterrolebindings", name | {"roleRef": role, "subjects": [user]})


def rule(group: str, resources: str, verbs: str) -> Raw:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


NEEDED = (rule("kueue.x-k8s.io", "workloads", "watch"), rule("kueue.x-k8s.io", "workloads/status", "patch"))


def local_queue(worker: Driver, namespace: str, name: str) -> None:
    worker.namespace(namespace)
    body = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": name}}
    path = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/localqueues"
    worker.ask("POST", path, body | {"spec": {"clusterQueue": "cq"}})


def with_probe(
    admin: Driver,
    asking: Callable[[Probe], Awaitable[Any]],
    needs: WorkerRequirements = NEEDS,
    *,
    timeout: float = 10.0,
    parallel: int = 8,
) -> Any:
    """Return what `asking` returns, given a Probe on the admin's hub."""

    async def run() -> Any:
        access = ClusterAccess(admin.hub.url, token=admin.hub.token)
        async with Client(Login(access=access)) as client:
            connector = WorkerConnector(client, SECRET.at("v1"), NS, timeout=timeout)
            return await asking(Probe(connector, needs, parallel=parallel, clock=lambda: NOW))

    return asyncio.run(run())


def ask(
    admin: Driver, needs: WorkerRequirements = NEEDS, queues: Queues | None = None, **options: Any
) -> Fitness:
    answer: Fitness = with_probe(admin, lambda probe: probe.ask(SOURCE, queues or {}), needs, **options)
    assert TOKEN not in repr(answer)
    assert LIMITED not in repr(answer)
    return answer


def unfit(why: str) -> Fitness:
    return Fitness(problems=(why,), asked_at=NOW)


def requests_to(worker: Driver) -> int:
    return len(worker.hub.journal)


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


# -- what is found


def test_a_worker_that_is_fit(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    assert ask(admin) == FIT
    assert {request.method for request in worker.hub.journal} == {"GET", "POST"}
    written = [r for r in worker.hub.journal if r.method == "POST" and not r.path.endswith(REVIEWS)]
    assert written == []


@pytest.mark.parametrize(
    ("kinds", "problem"),
    [
        pytest.param([], "install Kueue on the worker: it serves no Workloads", id="no Kueue"),
        pytest.param(
            crds("Workload", versions=("v1beta1",)),
            "update Kueue on the worker or on this hub: the worker serves Workloads in v1beta1,"
            " and this hub sends v1beta2",
            id="an older Kueue",
        ),
    ],
)
def test_kueue_on_the_worker(admin: Driver, kinds: list[Raw], problem: str) -> None:
    with serving(kinds=kinds) as worker:
        put_secret(admin, worker)
        assert ask(admin) == Fitness((problem,), unknown=(NO_RELEASE,), asked_at=NOW)


def test_a_newer_kueue_that_speaks_the_old_version_too(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    assert ask(admin, WorkerRequirements("v1beta1")) == FIT


def test_the_crds_of_job_kinds(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    tekton = JobKind("PipelineRun.v1.tekton.dev", "tekton.dev", "pipelineruns", "v1")
    missing = (
        "jobsets.v1.jobset.x-k8s.io (jobset.x-k8s.io/jobset), pipelineruns.v1.tekton.dev (PipelineRun.v1"
    )
    (problem,) = ask(admin, WorkerRequirements("v1beta2", (JOBS, JOBSETS, tekton))).problems
    assert problem.startswith(f"install the CRDs of {missing}")
    with serving(
        kinds=[
            *crds("Workload"),
            plain_crd("jobset.x-k8s.io", "JobSet"),
            plain_crd("tekton.dev", "PipelineRun"),
        ]
    ) as complete:
        put_secret(admin, complete)
        assert ask(admin, WorkerRequirements("v1beta2", (JOBS, JOBSETS, tekton))) == FIT


@pytest.mark.parametrize(
    ("image", "labels", "version"),
    [
        pytest.param("registry.k8s.io/kueue/kueue:v0.19.1", {}, "v0.19.1", id="image"),
        pytest.param("kueue:main", {"app.kubernetes.io/version": "v0.18.2"}, "v0.18.2", id="label"),
        pytest.param("kueue:main", {}, "", id="neither"),
    ],
)
def test_the_version_of_kueue(admin: Driver, image: str, labels: Raw, version: str) -> None:
    with serving(kinds=[*crds("Workload"), plain_crd("apps", "Deployment")]) as worker:
        put_secret(admin, worker)
        worker.namespace(NS)
        body = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "kueue-controller-manager", "labels": labels},
            "spec": {"template": {"spec": {"containers": [{"name": "manager", "image": image}]}}},
        }
        worker.ask("POST", f"/apis/apps/v1/namespaces/{NS}/deployments", body)
        answer = ask(admin)
        assert (answer.problems, answer.kueue_version) == ((), version)
        assert len(answer.unknown) == (not version)


def test_rights_that_the_account_lacks(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, token=LIMITED)
    grant(worker, rule("kueue.x-k8s.io", "workloads", "get watch"), rule("batch", "jobs", "get list"))
    denied = "patch workloads/status.kueue.x-k8s.io; create jobs.batch"
    assert ask(admin).problems == (
        (
            f"grant {denied} on the worker, in all namespaces, to the account of Secret {NS}/s: "
            "it has no such rights"
        ),
    )


def test_an_account_with_just_the_rights_that_are_needed(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, token=LIMITED)
    grant(worker, *NEEDED, rule("batch", "jobs", "create"))
    release = f"Kueue's version is not known: {REFUSED} get the Deployment {NS}/kueue-controller-manager"
    assert ask(admin, queues=QUEUES) == Fitness(
        unknown=(
            release,
            f"its namespaces are not known: {REFUSED} list namespaces",
            f"its LocalQueues are not known: {REFUSED} list localqueues.kueue.x-k8s.io in all namespaces",
        ),
        asked_at=NOW,
    )


def test_the_rights_that_are_granted_are_those_that_are_asked_for(admin: Driver) -> None:
    tekton = parse_external("PipelineRun.v1.tekton.dev")
    assert not isinstance(tekton, str)
    frameworks = ("batch/job", "jobset.x-k8s.io/jobset")
    jobset = plain_crd("jobset.x-k8s.io", "JobSet", FRAMEWORKS["jobset.x-k8s.io/jobset"].version)
    needs = WorkerRequirements(
        "v1beta2", job_kinds(frameworks, [tekton]), required_rights(frameworks, [tekton])
    )
    with serving(kinds=[*crds("Workload"), jobset, plain_crd("tekton.dev", "PipelineRun")]) as worker:
        put_secret(admin, worker, token=LIMITED)
        assert len(ask(admin, needs).problems) == 1
        grant(worker, *(rule.as_dict() for rule in policy_rules(frameworks, [tekton])))
        assert ask(admin, needs).problems == ()


def test_a_right_in_one_namespace_is_not_enough(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, token=LIMITED)
    worker.namespace("team")
    rules = {"metadata": {"name": "limited"}, "rules": [*NEEDED, rule("batch", "jobs", "create")]}
    worker.ask("POST", f"{RBAC}/namespaces/team/roles", rules)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"}
    user = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}
    binding = {"metadata": {"name": "limited"}, "roleRef": role, "subjects": [user]}
    worker.ask("POST", f"{RBAC}/namespaces/team/rolebindings", binding)
    (problem,) = ask(admin).problems
    assert "watch workloads.kueue.x-k8s.io" in problem


def test_namespaces_and_localqueues_that_the_worker_lacks(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    local_queue(worker, "team", "q")
    local_queue(worker, "of-its-own", "z")
    assert ask(admin, queues=QUEUES | {"away": frozenset({"q"})}).warnings == (
        "create namespaces away on the worker: jobs in them cannot run there",
        "create LocalQueues team/r on the worker: jobs in them cannot run there",
    )
    local_queue(worker, "team", "r")
    assert ask(admin, queues=QUEUES) == FIT


def test_localqueues_of_a_kueue_without_them(admin: Driver) -> None:
    with serving(kinds=crds("Workload")) as worker:
        put_secret(admin, worker)
        worker.namespace("team")
        (warning,) = ask(admin, queues=QUEUES).warnings
        assert "create LocalQueues team/q, team/r on" in warning


# -- what goes wrong


def test_a_secret_that_is_not_there_or_unusable(admin: Driver, worker: Driver) -> None:
    assert ask(admin) == unfit(f"Secret {NS}/s does not exist")
    put_secret(admin, worker, server=f"https://user:{TOKEN}@127.0.0.1:{worker.hub.port}")
    (problem,) = ask(admin).problems
    assert problem.startswith(f"in Secret {NS}/s, remove the user name from server")
    assert requests_to(worker) == 0


def test_a_token_that_is_not_accepted(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, token="of-yesterday")
    assert ask(admin) == unfit(f"the worker does not accept the credentials of Secret {NS}/s")


def test_a_worker_that_is_away(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    with worker.hub.outage():
        assert ask(admin) == unfit(f"the worker of Secret {NS}/s cannot be reached: Connection refused")


def test_a_worker_that_never_answers(admin: Driver, worker: Driver, silent: str) -> None:
    put_secret(admin, worker, server=silent)
    assert ask(admin, timeout=0.3) == unfit("the worker did not answer all that it was asked within 0.3 s")


ECHO = {"kind": "Status", "message": f"who is {TOKEN}?", "reason": TOKEN}


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
            {"status": 500},
            unfit("the worker answered with HTTP 500"),
            id="Kueue's group fails",
        ),
        pytest.param(
            "apis/kueue.x-k8s.io$",
            {"status": 200, "body": [TOKEN]},
            unfit("what the worker answered is no JSON object"),
            id="no object",
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
            "apis/batch$",
            {"status": 503},
            Fitness(
                unknown=("the kinds of batch are not known: the worker answered with HTTP 503", NO_RELEASE),
                asked_at=NOW,
            ),
            id="one group fails",
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
                unknown=(
                    f"3 of 3 rights are not known: {REFUSED} ask for its own rights",
                    NO_RELEASE,
                ),
                asked_at=NOW,
            ),
            id="no reviews",
        ),
        pytest.param(
            REVIEWS,
            {"status": 401},
            unfit(f"the worker does not accept the credentials of Secret {NS}/s"),
            id="refused on the way",
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


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        pytest.param({"status": 500}, "the worker answered with HTTP 500", id="fails"),
        pytest.param(
            {"hang_up": True},
            f"the worker of Secret {NS}/s cannot be reached: ServerDisconnectedError",
            id="hangs up",
        ),
        pytest.param({"delay": 10.0}, "the worker did not answer within 3 s", id="late"),
    ],
)
def test_no_worker_is_unfit_because_it_does_not_tell_its_localqueues(
    admin: Driver, worker: Driver, fault: Raw, why: str
) -> None:
    put_secret(admin, worker)
    worker.namespace("team")
    worker.hub.faults.add("GET", "/localqueues", times=2, body=ECHO, **fault)
    answer = ask(admin, queues=QUEUES, timeout=3 if "delay" in fault else 10)
    assert (answer.problems, answer.warnings) == ((), ())
    assert f"its LocalQueues are not known: {why}" in answer.unknown


# -- what is remembered


def test_an_answer_is_kept_for_the_same_secret_and_the_same_question(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)
    local_queue(worker, "team", "q")

    async def story(probe: Probe) -> list[list[str]]:
        asked: list[list[str]] = []

        async def expected_result(queues: Queues, warnings: int) -> None:
            before = requests_to(worker)
            assert len((await probe.ask(SOURCE, queues)).warnings) == warnings
            asked.append([r.path.rpartition("/")[2] for r in worker.hub.journal[before:]])

        await expected_result({}, 0)
        await expected_result({}, 0)
        await expected_result({"team": frozenset({"q"})}, 0)
        await expected_result({"team": frozenset({"q"})}, 0)
        await expected_result(QUEUES, 1)
        await expected_result({}, 0)
        put_secret(admin, worker, token=LIMITED)
        await probe.ask(SOURCE, {})
        asked.append([r.path.rpartition("/")[2] for r in worker.hub.journal[-1:]])
        return asked

    first, again, places, *others = with_probe(admin, story)
    assert REVIEWS in first
    assert again == []
    assert "localqueues" in places
    assert REVIEWS not in places
    assert others == [[], places, [], others[3]]
    assert others[3] != []


def test_a_bad_answer_is_kept_as_well_until_the_secret_changes(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, token="of-yesterday")

    async def story(probe: Probe) -> list[int]:
        counts = []
        for _ in range(2):
            assert (await probe.ask(SOURCE, {})).problems
            counts.append(requests_to(worker))
        put_secret(admin, worker)
        assert not (await probe.ask(SOURCE, {})).problems
        return counts

    first, second = with_probe(admin, story)
    assert first == second


def test_a_secret_that_comes_is_used_at_once(admin: Driver, worker: Driver) -> None:
    async def story(probe: Probe) -> list[Fitness]:
        missing = await probe.ask(SOURCE, {})
        put_secret(admin, worker)
        return [missing, await probe.ask(SOURCE, {})]

    assert with_probe(admin, story) == [unfit(f"Secret {NS}/s does not exist"), FIT]


def test_requests_for_the_same_at_once_get_the_same_answer(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker)

    async def story(probe: Probe) -> int:
        answers = await asyncio.gather(*(probe.ask(SOURCE, {}) for _ in range(5)))
        assert answers == [FIT] * 5
        return sum(request.path.endswith(REVIEWS) for request in worker.hub.journal)

    assert with_probe(admin, story) == len(NEEDS.rights)


# -- many workers


@asynccontextmanager
async def hanging() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The address of a server that never says anything; the event tells that somebody has come."""
    came = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", came


def test_who_never_answers_keeps_nobody_waiting(admin: Driver, worker: Driver) -> None:
    put_secret(admin, worker, "dead", server="https://127.0.0.1:1")
    put_secret(admin, worker)

    async def story(probe: Probe) -> tuple[list[Fitness], bool]:
        async with hanging() as (address, came):
            put_secret(admin, worker, "hangs", server=address)
            hangs = asyncio.create_task(probe.ask(CredentialSource("Secret", "hangs"), {}))
            await came.wait()  # so it has the only place
            others = await asyncio.gather(
                probe.ask(CredentialSource("Secret", "dead"), {}), probe.ask(SOURCE, {})
            )
            waits = not hangs.done()
            hangs.cancel()
            await asyncio.wait([hangs])
            return others, waits

    dead = unfit(f"the worker of Secret {NS}/dead cannot be reached: Connection refused")
    assert with_probe(admin, story, parallel=1) == ([dead, FIT], True)


def test_being_cancelled_is_no_answer(admin: Driver, worker: Driver) -> None:
    async def cancelled(probe: Probe) -> list[Any]:
        async with hanging() as (address, came):
            put_secret(admin, worker, server=address)
            asking = asyncio.create_task(probe.ask(SOURCE, {}))
            await came.wait()
            asking.cancel()
            ended = await asyncio.gather(asking, return_exceptions=True)
        put_secret(admin, worker)
        return [type(*ended), await probe.ask(SOURCE, {})]

    assert with_probe(admin, cancelled, parallel=1) == [asyncio.CancelledError, FIT]
