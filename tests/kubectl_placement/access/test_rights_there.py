"""A right that the caller lacks on a job's cluster is named, and what can be read is shown."""

import json

from tests.kubectl_placement.access.following import followed
from tests.kubectl_placement.access.stage import JobStage, as_jane_there

NO_JOB = (
    "ask an admin of cluster a for the right to get jobs.batch in namespace default there (check: kubectl "
    "auth can-i get jobs.batch/train -n default; `kubectl create role job-reader --verb=get "
    "--resource=jobs.batch -n default` and a RoleBinding give it): "
    'jobs.batch "train" is forbidden: User "jane" cannot get resource "jobs" in API group "batch" in the '
    'namespace "default"; Pods of another job of that name may be among them'
)
NO_EVENTS = (
    "ask an admin of cluster a for the right to list events in namespace default there (check: kubectl auth "
    "can-i list events -n default; `kubectl create role job-reader --verb=list --resource=events -n default` "
    'and a RoleBinding give it): events is forbidden: User "jane" cannot list resource "events" in API group '
    '"" in the namespace "default"; the last event of each Pod is unknown'
)


def test_without_the_right_to_the_job_its_log_and_story_are_shown_and_the_right_is_named(
    stage: JobStage,
) -> None:
    [pod] = stage.job()
    as_jane_there(stage, "pods pods/log")
    done = stage.run("logs", "train")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{pod} has started on node-1\n", f"{NO_JOB}\n")
    story = json.loads(stage.run("job", "train", "-o", "json").stdout)
    assert [row["name"] for row in story["pods"]["pods"]] == [pod]
    assert story["notes"][-2:] == [NO_JOB, NO_EVENTS]


def test_a_right_that_is_missing_while_logs_are_followed_is_named_once(stage: JobStage) -> None:
    [pod] = stage.job()
    as_jane_there(stage, "pods pods/log")
    with followed(stage, "train") as log:
        assert log.next() == NO_JOB
        assert log.next() == f"{pod} has started on node-1"
        stage.write(pod, "more")
        assert log.next() == "more"
        stage.place("train", "p-a", finished=True)
        stage.fleet.hubs["a"].end_log("default", pod, "c")
        assert log.rest() == []
