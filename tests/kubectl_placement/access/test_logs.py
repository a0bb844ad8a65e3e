"""`logs` as the owner of a job types it: once, and following a job that restarts, moves and ends."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from kubectl_placement.access.log_follower import LAST_LINES_SECONDS
from placement_lab.hub import Hub
from tests.kubectl_placement.access.following import followed
from tests.kubectl_placement.access.stage import WORKLOADS, JobStage
from tests.support.admin import Admin
from tests.support.driver import eventually
from tests.support.hub_client import Client

TWO = [{"name": "c", "image": "i"}, {"name": "side", "image": "i"}]


def test_the_log_of_the_only_pod_of_a_job(stage: JobStage) -> None:
    [pod] = stage.job()
    stage.write(pod, "one", "two")
    done = stage.run("logs", "train")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == f"{pod} has started on node-1\none\ntwo\n"


def test_of_several_pods_the_first_one_is_shown_as_by_kubectl_or_all_with_a_prefix(stage: JobStage) -> None:
    pods = stage.job(count=3)
    done = stage.run("logs", "train")
    found = re.fullmatch(r"Found 3 pods, using pod/(\S+)\n", done.stderr)
    assert found
    assert found[1] in pods
    assert done.stdout.startswith(f"{found[1]} has started on ")
    assert stage.run("logs", "train", "--all-pods").stdout.splitlines() == [
        f"[pod/{pod}/c] {pod} has started on node-{number}" for number, pod in enumerate(pods, 1)
    ]


def test_the_default_container_and_all_containers(stage: JobStage) -> None:
    [pod] = stage.job(containers=TWO)
    stage.write(pod, "beside", container="side")
    one = stage.run("logs", "train")
    assert (one.stderr, one.stdout) == (
        'Defaulted container "c" out of: c, side\n',
        f"{pod} has started on node-1\n",
    )
    assert stage.run("logs", "train", "-c", "side").stdout == f"{pod} has started on node-1\nbeside\n"
    both = stage.run("logs", "train", "--all-containers", "--prefix", "--tail", "1").stdout
    assert both == f"[pod/{pod}/c] {pod} has started on node-1\n[pod/{pod}/side] beside\n"


PARTS = {
    "--tail 2": "two\nthree\n",
    "--tail 1 --limit-bytes 2": "th",
    "--since 1h --tail 1": "three\n",
    "--since-time 2200-01-01T00:00:00Z": "",
}
"""Options, and what they show of three lines."""


def test_a_part_of_a_log(stage: JobStage) -> None:
    [pod] = stage.job()
    stage.write(pod, "one", "two", "three")
    assert {words: stage.run("logs", "train", *words.split()).stdout for words in PARTS} == PARTS
    line = stage.run("logs", "train", "--timestamps").stdout
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z train-", line)


def test_the_previous_run_of_a_container(stage: JobStage) -> None:
    [pod] = stage.job()
    before = stage.run("logs", "train", "-p")
    assert (before.exit_code, before.stderr) == (
        1,
        f'Error from server (BadRequest): previous terminated container "c" in pod "{pod}" not found\n',
    )
    stage.fleet.hubs["a"].end_log("default", pod, "c", restarts=True)
    stage.write(pod, "again")
    assert stage.run("logs", "train", "-p").stdout == f"{pod} has started on node-1\n"
    assert stage.run("logs", "train").stdout == "again\n"


ERRORS = (
    ("train --tail -2", 2, "--tail must be greater than or equal to -1"),
    ("train --since 5m --since-time 2026-11-26T18:00:00Z", 2, "at most one of"),
    ("train --since-time noon", 2, "use an RFC 3339 time"),
    ("train -c c --all-containers", 2, "should not be specified"),
    ("a b c", 2, "give the job as"),
    ("train -c d", 1, "Error: container d is not valid for pod train-"),
    ("trian", 1, "did you mean train?"),
    (
        "waits",
        1,
        (
            "Error: run `kubectl placement explain workload job-waits -n default` to see why: "
            "job.batch/waits waits, and is on no cluster yet"
        ),
    ),
)
"""Words, the exit code, and what the error says."""


def test_an_error_says_what_to_do(stage: JobStage) -> None:
    stage.job()
    stage.workload("waits")
    for words, code, text in ERRORS:
        done = stage.run("logs", *words.split())
        assert (done.exit_code, done.stdout) == (code, ""), words
        assert text in done.stderr, words


@pytest.mark.parametrize("words", ["logs", "logs -f"])
def test_of_a_finished_job_kueue_has_removed_the_pods(stage: JobStage, words: str) -> None:
    [pod] = stage.job()
    stage.place("train", "p-a", finished=True)
    stage.remove("train", "a")
    eventually(lambda: pod in stage.pods("train"), False)
    done = stage.run(*words.split(), "train")
    assert done.exit_code == 1
    assert "look for its logs where cluster a keeps those of Pods that are gone" in done.stderr


def test_a_job_of_that_name_that_is_not_the_hubs_is_not_shown(stage: JobStage) -> None:
    stage.job()
    path = "/apis/batch/v1/namespaces/default/jobs/train"
    hub = stage.fleet.hubs["a"]
    Client(hub).patch(
        path, {"metadata": {"annotations": {"kueue.x-k8s.io/prebuilt-workload-name": "job-other"}}}
    )
    done = stage.run("logs", "train")
    assert done.exit_code == 1
    assert "rename or delete Job default/train there, or the hub's" in done.stderr


def test_lines_are_kept_as_they_are_and_each_has_one_prefix(stage: JobStage) -> None:
    """Bytes that steer a terminal, in a pipe; a progress bar; a very long line."""
    [pod] = stage.job()
    stage.write(pod, "\x1b[31mred")
    assert stage.run("logs", "train", "--tail", "1").stdout_bytes == b"\x1b[31mred\n"
    for line in ("10%\r20%\r30%", "x" * 1_000_000):
        stage.write(pod, line)
        done = stage.run("logs", "train", "--tail", "1", "--prefix")
        assert done.stdout_bytes == f"[pod/{pod}/c] {line}\n".encode()


def test_it_starts_without_what_it_does_not_need(stage: JobStage) -> None:
    [pod] = stage.job()
    unneeded = {
        "cel_expr_python",
        "cryptography",
        "kopf",
        "kubectl_placement.access.kueue_login",
        "kubectl_placement.hub.kinds",
        "placement_ac.config.settings",
        "placement_ac.core.api.schemas",
        "placement_ac.core.dispatch.guard",
    }
    code = f"""
import sys
from placement_ac.cli.main import main
main(["logs", "train", "--since", "1h", "--kubeconfig", {str(stage.kubeconfig)!r}], standalone_mode=False)
sys.exit(" ".join({unneeded} & {{*sys.modules}}))
"""
    env = os.environ | {"XDG_CONFIG_HOME": str(stage.kubeconfig.parent)}
    run = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, env=env)
    assert (run.stdout, run.stderr.strip()) == (f"{pod} has started on node-1\n", "")


def condition(kind: str, status: str, when: str, message: str = "") -> dict[str, str]:
    time = {"lastTransitionTime": f"2026-08-01T{when}:00Z"}
    return {"type": kind, "status": status, "reason": "x", "message": message} | time


def moved_back(stage: JobStage) -> str:
    """Put a job on b, whose record names a: Kueue sent it there when b was lost. Return its Pod."""
    [pod] = stage.job("train", "b")
    stage.place("train", None)
    stage.place("train", "p-a")
    lost = condition("Evicted", "False", "11:41", 'Previously: Evicted due to "mk" (Admitting remote lost)')
    clusters = "/apis/kueue.x-k8s.io/v1beta2/multikueueclusters"
    for path, conditions in {
        f"{WORKLOADS.format('default')}/job-train": [condition("Admitted", "True", "11:41"), lost],
        f"{clusters}/p-a": [condition("Active", "True", "11:30")],
        f"{clusters}/p-b": [condition("Active", "True", "11:50")],
    }.items():
        found = stage.admin.request("GET", path, None)
        body = found | {"status": (found.get("status") or {}) | {"conditions": conditions}}
        stage.admin.request("PUT", f"{path}/status", body)
    return pod


THERE = "job.batch/train probably runs on b, not on a as Kueue's record says: "


def test_a_job_that_was_lost_and_is_back_is_read_where_it_runs(stage: JobStage) -> None:
    pod = moved_back(stage)
    done = stage.run("logs", "train")
    assert (done.exit_code, done.stdout) == (0, f"{pod} has started on node-1\n"), done.output
    assert done.stderr.startswith(THERE)
    text = stage.run("job", "train").stdout
    assert "; it probably runs on b, not on a" in text
    assert "\nPods on b\nNAME" in text


# -- follow


def ended(process: "subprocess.Popen[str]") -> int:
    return process.wait(20)


def test_it_follows_a_job_from_its_queue_to_another_cluster_and_to_its_end(stage: JobStage) -> None:
    stage.workload()
    with followed(stage, "train") as log:
        assert log.next() == "job.batch/train waits for a cluster"
        [pod] = stage.job()
        assert log.next() == "job.batch/train runs on cluster a now"
        assert log.next() == f"{pod} has started on node-1"
        stage.write(pod, "more")
        assert log.next() == "more"
        stage.place("train", None)
        stage.remove("train", "a")
        assert log.next() == "job.batch/train has left cluster a"
        assert log.next() == "job.batch/train waits for a cluster"
        [moved] = stage.job(worker="b")
        assert log.next() == "job.batch/train runs on cluster b now"
        assert log.next() == f"{moved} has started on node-1"
        stage.place("train", "p-b", finished=True)
        stage.fleet.hubs["b"].end_log("default", moved, "c")
        assert log.rest() == []
        assert ended(log.process) == 0


def test_a_job_that_was_lost_and_is_back_is_followed_where_it_runs(stage: JobStage) -> None:
    pod = moved_back(stage)
    with followed(stage, "train") as log:
        assert log.next().startswith(THERE)
        assert log.next() == f"{pod} has started on node-1"
        stage.write(pod, "more", worker="b")
        assert log.next() == "more"
        stage.place("train", "p-a", finished=True)
        stage.fleet.hubs["b"].end_log("default", pod, "c")
        assert log.rest() == []
        assert ended(log.process) == 0


def test_a_lost_connection_loses_and_repeats_no_line(stage: JobStage) -> None:
    [pod] = stage.job()
    hub = stage.fleet.hubs["a"]
    with followed(stage, "train", "--tail", "1") as log:
        assert log.next() == f"{pod} has started on node-1"
        stage.write(pod, "before")
        assert log.next() == "before"
        hub.go_down()
        stage.write(pod, "meanwhile")
        hub.come_back()
        found = [log.next()]
        while found[-1] != "meanwhile":
            found.append(log.next())
        assert [line for line in found if not line.endswith("does not answer; trying again")] == ["meanwhile"]


def test_all_pods_are_followed_also_those_that_come_later_until_the_job_is_deleted(stage: JobStage) -> None:
    pods = stage.job(count=2)
    with followed(stage, "train", "--all-pods") as log:
        first = sorted(log.next() for _ in pods)
        assert first == [f"[pod/{pod}/c] {pod} has started on node-{n}" for n, pod in enumerate(pods, 1)]
        path = "/apis/batch/v1/namespaces/default/jobs/train"
        Client(stage.fleet.hubs["a"]).patch(path, {"spec": {"parallelism": 3}})
        eventually(lambda: len(stage.pods("train")), 3)
        [new] = set(stage.pods("train")) - set(pods)
        assert log.next() == f"[pod/{new}/c] {new} has started on node-3"
        stage.remove("train", "a")
        workload = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/job-train"
        stage.admin.request("DELETE", workload, None)
        assert log.rest() == []
        assert ended(log.process) == 0


def test_the_end_of_a_log_that_still_flows_is_not_cut(stage: JobStage) -> None:
    [pod] = stage.job()
    with followed(stage, "train") as log:
        log.next()
        stage.place("train", "p-a", finished=True)
        lines = [f"late {number}" for number in range(8)]
        for line in lines:
            stage.write(pod, line)
            time.sleep(LAST_LINES_SECONDS / 4)
        stage.fleet.hubs["a"].end_log("default", pod, "c")
        assert log.rest() == lines
        assert ended(log.process) == 0


def log_in(stage: JobStage, user: int, token: str) -> None:
    """Write another token of a user into the kubeconfig: 0: on the hub, 1: on worker a."""
    config = json.loads(stage.kubeconfig.read_text())
    config["users"][user]["user"] = {"token": token}
    stage.kubeconfig.write_text(json.dumps(config))


@pytest.mark.parametrize("user", [pytest.param(0, id="on the hub"), pytest.param(1, id="on the cluster")])
def test_a_login_that_has_expired_is_renewed(stage: JobStage, user: int) -> None:
    [pod] = stage.job()
    hub = [stage.hub, stage.fleet.hubs["a"]][user]
    old, new = (hub.add_user("jane", token, ["system:masters"]) for token in ("old-token", "new-token"))
    log_in(stage, user, old)
    with followed(stage, "train") as log:
        assert log.next() == f"{pod} has started on node-1"
        log_in(stage, user, new)
        since = len(hub.journal)
        hub.expire_token(old)
        stage.fleet.hubs["a"].go_down()
        stage.fleet.hubs["a"].come_back()
        eventually(lambda: _is_renewed(hub, since))
        stage.write(pod, "on")
        found = log.next()
        assert (log.next() if found.endswith("trying again") else found) == "on"


def _is_renewed(hub: Hub, since: int) -> bool:
    """Whether a request was refused for its login, and a later one accepted."""
    statuses = [one.status for one in list(hub.journal)[since:]]
    return 401 in statuses and 200 in statuses[statuses.index(401) :]


def test_a_new_login_that_is_not_accepted_either_ends_it(stage: JobStage) -> None:
    [pod] = stage.job()
    there = stage.fleet.hubs["a"]
    log_in(stage, 1, there.add_user("jane", "old-token", ["system:masters"]))
    with followed(stage, "train") as log:
        assert log.next() == f"{pod} has started on node-1"
        there.expire_token("old-token")
        assert any("log in again" in line for line in log.rest())
        assert ended(log.process) == 1


def looks_again(there: Hub) -> None:
    """Wait until the Pods have been listed twice more, with the status that they have now."""
    since = len(there.journal)

    def lists() -> int:
        return sum(one.path.endswith("/pods") for one in list(there.journal)[since:])

    eventually(lambda: lists() >= 2)


def pod_status(stage: JobStage, pod: str, **status: object) -> None:
    """Change the status of a Pod on worker a, as its kubelet does."""
    path = f"/api/v1/namespaces/default/pods/{pod}"
    with Admin(stage.workers["a"]) as there:
        found = there.request("GET", path, None)
        there.request("PUT", f"{path}/status", found | {"status": found["status"] | status})


def test_a_pod_whose_container_restarts_is_followed_on(stage: JobStage) -> None:
    one, two = stage.job(count=2)
    with followed(stage, "train") as log:
        assert log.next() == f"Found 2 pods, using pod/{one}"
        assert log.next() == f"{one} has started on node-1"
        stage.fleet.hubs["a"].end_log("default", one, "c", restarts=True)
        stage.write(one, "again")
        running = {"name": "c", "restartCount": 1, "state": {"running": {}}}
        looks_again(stage.fleet.hubs["a"])
        pod_status(stage, one, containerStatuses=[running])
        assert log.next() == "again"
        stage.fleet.hubs["a"].end_log("default", one, "c")
        pod_status(stage, one, phase="Failed")
        assert log.next() == f"the Pod has ended, using pod/{two} now"
        assert log.next() == f"{two} has started on node-2"
