"""A job's Workload by the words on the command line."""

import pytest

from kubectl_placement.jobs.lookup import SubjectNotFound, find_workloads
from placement_ac.core.api.constants import WORKLOAD
from tests.support.builders import Raw, an


def of(
    owner: str,
    kind: str = "batch/v1 Job",
    namespace: str = "team",
    finished: bool = False,
    created: int = 1,
    admitted: bool = False,
) -> Raw:
    """The Workload `KIND-OWNER-CREATED` of a job."""
    api_version, kind = kind.split()
    conditions = {"Finished": finished, "Admitted": admitted}
    status = {"conditions": [{"type": name, "status": str(now)} for name, now in conditions.items()]}
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": f"{kind}/{owner}"}
    return an(
        WORKLOAD,
        f"{kind.lower()}-{owner}-{created}",
        namespace,
        status=status,
        ownerReferences=[reference],
        creationTimestamp=f"2026-08-01T12:00:0{created}Z",
    )


PYTORCH = "kubeflow.org/v1 PyTorchJob"
WORKLOADS = [
    of("train"),
    of("train", PYTORCH),
    of("train", namespace="other"),
    of("eval"),
    of("nightly", finished=True, created=1),
    of("nightly", finished=True, created=2),
    of("again", finished=False, created=1),
    of("again", finished=True, created=2),
    of("elastic", finished=True, admitted=True, created=1),
    of("elastic", admitted=True, created=2),
    of("elastic", created=3),
    of("serve", "leaderworkerset.x-k8s.io/v1 LeaderWorkerSet"),
    of("queue", "batch.volcano.sh/v1alpha1 Job"),
    of("queue"),
    of("alone", "v1 Pod"),
    of("daily", "example.com/v1 Policy"),
    an(WORKLOAD, "by-hand", "team"),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param("eval", "job-eval-1", id="the name of a job"),
        pytest.param("job/train", "job-train-1", id="a type and a name"),
        pytest.param("jobs train", "job-train-1", id="a type and a name as two words"),
        pytest.param("Job/train", "job-train-1", id="the kind as it is written"),
        pytest.param("pytorchjob.kubeflow.org/train", "pytorchjob-train-1", id="a type with its group"),
        pytest.param("pytorchjobs.v1.kubeflow.org/train", "pytorchjob-train-1", id="with version and group"),
        pytest.param("lws/serve", "leaderworkerset-serve-1", id="the short name of a kind"),
        pytest.param("po/alone", "pod-alone-1", id="a kind of the core group"),
        pytest.param("policies/daily", "policy-daily-1", id="a plural on -ies"),
        pytest.param("job.batch/queue", "job-queue-1", id="one of two groups with a kind of that name"),
        pytest.param("nightly", "job-nightly-2", id="the newest Workload of a job whose last has finished"),
        pytest.param("again", "job-again-1", id="the Workload that has not finished"),
        pytest.param("elastic", "job-elastic-2", id="the slice of an elastic job that runs while it grows"),
        pytest.param("workload/job-nightly-1", "job-nightly-1", id="a Workload"),
        pytest.param("wl job-eval-1", "job-eval-1", id="a Workload by the short name"),
        pytest.param("job-eval-1", "job-eval-1", id="a bare name that only a Workload has"),
        pytest.param("by-hand", "by-hand", id="a Workload without a job"),
    ],
)
def test_the_workload_of_a_job(words: str, expected: str) -> None:
    assert find_workloads(WORKLOADS, words.split(), "team")["metadata"]["name"] == expected


@pytest.mark.parametrize(
    ("words", "namespace", "expected"),
    [
        pytest.param(
            "evil", "team", 'no job "evil" found in namespace team; did you mean eval?', id="a misspelt name"
        ),
        pytest.param(
            "job/trian",
            "team",
            'no Workload of job "trian" found in namespace team; did you mean train?',
            id="a misspelt name of a type",
        ),
        pytest.param(
            "pytorchjobb/train",
            "team",
            'no Workload of pytorchjobb "train" found in namespace team; did you mean pytorchjob?',
            id="a misspelt type",
        ),
        pytest.param(
            "train",
            "team",
            "use `job.batch/train` or `pytorchjob.kubeflow.org/train`: train is ambiguous",
            id="two jobs of one name",
        ),
        pytest.param(
            "job/train",
            "",
            "use `-n other train` or `-n team train`: train exists in 2 namespaces",
            id="two namespaces",
        ),
        pytest.param(
            "job/queue",
            "team",
            "use `job.batch.volcano.sh/queue` or `job.batch/queue`: queue is ambiguous",
            id="two groups with one kind",
        ),
        pytest.param(
            "eval",
            "other",
            'no job "eval" found in namespace other; does it have the label kueue.x-k8s.io/queue-name?',
            id="another namespace",
        ),
        pytest.param(
            "job/daily-report",
            "team",
            'no Workload of job "daily-report" found in namespace team; does it have the label '
            "kueue.x-k8s.io/queue-name?",
            id="a job without a Workload",
        ),
        pytest.param(
            "workload/gone", "team", 'no Workload of workload "gone" found in namespace team', id="a Workload"
        ),
        pytest.param(
            "eval daily",
            "team",
            'name one job, as NAME, TYPE/NAME or TYPE NAME: "eval" is no type',
            id="two names",
        ),
        pytest.param(
            "job/eval job/daily",
            "team",
            'name one job, as NAME, TYPE/NAME or TYPE NAME: "job/eval" is no type',
            id="two names with their types",
        ),
        pytest.param(
            "pod/eval-0-x7k2p",
            "team",
            'use `job.batch/eval`: "eval-0-x7k2p" in namespace team is no job, but perhaps a Pod of it',
            id="a Pod of a job",
        ),
        pytest.param(
            "eval-x7k2p",
            "team",
            'use `job.batch/eval`: "eval-x7k2p" in namespace team is no job, but perhaps a Pod of it',
            id="the name of a Pod of a job",
        ),
    ],
)
def test_no_workload_is_found(words: str, namespace: str, expected: str) -> None:
    with pytest.raises(SubjectNotFound) as error:
        find_workloads(WORKLOADS, words.split(), namespace)
    assert str(error.value) == expected


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({}, id="nothing at all"),
        pytest.param({"metadata": {"ownerReferences": [None, {"kind": 3}]}}, id="owners of the wrong type"),
        pytest.param({"metadata": {"ownerReferences": "job"}}, id="owners that are no list"),
    ],
)
def test_a_malformed_workload_is_ignored(broken: Raw) -> None:
    found = find_workloads([broken, of("eval")], ["eval"], "")
    assert found["metadata"]["name"] == "job-eval-1"
