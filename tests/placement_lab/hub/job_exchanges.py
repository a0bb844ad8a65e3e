"""
Requests about Jobs, and the answers of a real kube-apiserver to them (`job_exchanges.jsonl`).

`record` tells how they are recorded. They build on those before them.
"""

from typing import Any, Final

from tests.support.exchanges import APPLY, JSON, MERGE, STRATEGIC, Step

Object = dict[str, Any]

JOBS: Final = "/apis/batch/v1/namespaces/default/jobs"
GPU: Final = "nvidia.com/gpu"


def pod(*containers: Object, **fields: Any) -> Object:
    return {"restartPolicy": "Never", "containers": list(containers) or [container()], **fields}


def container(**fields: Any) -> Object:
    return {"name": "main", "image": "busybox", **fields}


def asks(requests: Object | None = None, limits: Object | None = None) -> Object:
    given = {"requests": requests, "limits": limits}
    return pod(container(resources={key: value for key, value in given.items() if value is not None}))


def job(name: str, template: Object | None = None, metadata: Object | None = None, **spec: Any) -> Object:
    """Return a Job; `template`: the spec of its Pods, `metadata`: their metadata."""
    pods = {"spec": pod() if template is None else template} | ({"metadata": metadata} if metadata else {})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": pods, **spec},
    }


def without(obj: Object, key: str) -> Object:
    return {k: v for k, v in obj.items() if k != key}


def create(name: str, *args: Any, query: str = "", **spec: Any) -> Step:
    return Step(name, "POST", JOBS + query, job(name, *args, **spec))


def patch(name: str, of: str, spec: Object, kind: str = STRATEGIC) -> Step:
    return Step(name, "PATCH", f"{JOBS}/{of}", {"spec": spec}, kind)


def template(**spec: Any) -> Object:
    return {"template": {"spec": spec}}


FULL_POD: Final = pod(
    container(
        image="registry:5000/a/b:v1",
        env=[{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
        ports=[{"containerPort": 80}],
        readinessProbe={"httpGet": {"path": "/", "port": 80}},
        volumeMounts=[{"name": name, "mountPath": f"/{name}"} for name in "abcdef"],
        resources={"limits": {"cpu": 1, GPU: 1}},
    ),
    initContainers=[{"name": "first", "image": "busybox@sha256:" + "a" * 64}],
    volumes=[
        {"name": "a", "configMap": {"name": "a"}},
        {"name": "b", "secret": {"secretName": "b"}},
        {"name": "c", "emptyDir": {}},
        {"name": "d", "hostPath": {"path": "/d"}},
        {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
        {"name": "f", "downwardAPI": {"items": [{"path": "f", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ],
    serviceAccountName="runner",
)
FAILURES: Final = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
}

STEPS: Final[tuple[Step, ...]] = (
    # -- defaults
    create("plain"),
    create("parallelism", parallelism=4),
    create("both", parallelism=8, completions=3),
    create("completions", completions=3),
    create("none-at-once", parallelism=0),
    create("indexed", completionMode="Indexed", completions=3, parallelism=2),
    create("suspended", suspend=True, metadata={"labels": {"app": "train"}}),
    create("suspended-none", pod(nodeSelector={"a": "b"}), suspend=True),
    create("full", FULL_POD),
    create(
        "latest",
        pod(
            container(image="registry:5000/a/b"),
            container(name="b", image="b:latest"),
            container(name="c", image="b@sha256:" + "a" * 64),
        ),
    ),
    create(
        "on-failure",
        pod(restartPolicy="OnFailure"),
        backoffLimit=0,
        ttlSecondsAfterFinished=10,
        activeDeadlineSeconds=60,
    ),
    create("failure-policy", podFailurePolicy=FAILURES),
    create("per-index", completionMode="Indexed", completions=3, backoffLimitPerIndex=1),
    create("limits-only", asks(limits={GPU: 2, "cpu": "1", "memory": "1Gi"})),
    create("requests-and-limits", asks({"cpu": "500m"}, {GPU: 1, "cpu": 1})),
    create("as-numbers", asks({"cpu": 0.5, "memory": 1000000}, {GPU: "2"})),
    create(
        "as-texts",
        asks(
            {"cpu": "1000m", "memory": "1024Mi", "ephemeral-storage": "0.5Gi"},
            {"cpu": "1.5", "memory": "1500Mi"},
        ),
    ),
    create("wrong-types", metadata={"labels": {"a/b.c": 5}}),
    create("of-kueue", suspend=True, managedBy="kueue.x-k8s.io/multikueue"),
    Step(
        "labelled",
        "POST",
        JOBS,
        {**job("labelled"), "metadata": {"name": "labelled", "labels": {"kueue.x-k8s.io/queue-name": "q"}}},
        JSON,
    ),
    Step(
        "labelled-twice",
        "POST",
        JOBS,
        {
            **job("labelled-twice", metadata={"labels": {"app": "a"}}),
            "metadata": {"name": "labelled-twice", "labels": {"app": "a"}},
        },
        JSON,
    ),
    Step("with-status", "POST", JOBS, {**job("with-status"), "status": {"active": 3}}, JSON),
    Step("generated", "POST", JOBS, {**job(""), "metadata": {"generateName": "train-"}}, JSON),
    Step("get-plain", "GET", f"{JOBS}/plain", None, JSON),
    Step("apply", "PATCH", f"{JOBS}/applied?fieldManager=tester", job("applied", parallelism=2), APPLY),
    Step("apply-again", "PATCH", f"{JOBS}/applied?fieldManager=tester", job("applied", parallelism=2), APPLY),
    Step(
        "apply-other-image",
        "PATCH",
        f"{JOBS}/applied?fieldManager=tester",
        job("applied", pod(container(image="other")), parallelism=2),
        APPLY,
    ),
    # -- refused
    create("no-restart-policy", without(pod(), "restartPolicy")),
    create("restart-always", pod(restartPolicy="Always")),
    create("restart-unknown", pod(restartPolicy="Sometimes")),
    create("no-containers", without(pod(), "containers")),
    create("empty-containers", pod() | {"containers": []}),
    create("no-pod-spec", {}),
    Step("no-template", "POST", JOBS, {**job("no-template"), "spec": {}}, JSON),
    Step("no-spec", "POST", JOBS, without(job("no-spec"), "spec"), JSON),
    create("container-without-name", pod({"image": "busybox"})),
    create("container-without-image", pod({"name": "main"})),
    create("container-bad-name", pod(container(name="Main_1"))),
    create("container-twice", pod(container(), container())),
    create("gpu-without-limit", asks({GPU: 1})),
    create("gpu-other-limit", asks({GPU: 1}, {GPU: 2})),
    create("gpu-half", asks(limits={GPU: 0.5})),
    create("request-over-limit", asks({"cpu": 2}, {"cpu": 1})),
    create("negative-request", asks({"cpu": -1})),
    create("no-quantity", asks({"cpu": "much"})),
    create("no-domain", asks(limits={"gpu": 1})),
    create("unknown-volume", pod(container(volumeMounts=[{"name": "data", "mountPath": "/data"}]))),
    create("bad-pod-label", metadata={"labels": {"app": "no value"}}),
    create("negative-parallelism", parallelism=-1),
    create("negative-completions", completions=-1),
    create("negative-backoff", backoffLimit=-1),
    create("negative-ttl", ttlSecondsAfterFinished=-1),
    create("negative-deadline", activeDeadlineSeconds=-1),
    create("text-parallelism", parallelism="4"),
    create("indexed-without-completions", completionMode="Indexed"),
    create("indexed-with-parallelism", completionMode="Indexed", parallelism=4),
    create("unknown-mode", completionMode="Sometimes"),
    create("per-index-not-indexed", backoffLimitPerIndex=1),
    create("failure-policy-on-failure", pod(restartPolicy="OnFailure"), podFailurePolicy=FAILURES),
    create("selector", selector={"matchLabels": {"a": "b"}}),
    create(
        "manual-selector",
        selector={"matchLabels": {"a": "b"}},
        metadata={"labels": {"a": "b"}},
        manualSelector=True,
    ),
    create("manual-selector-without-labels", selector={"matchLabels": {"a": "b"}}, manualSelector=True),
    create("manual-without-selector", manualSelector=True),
    create("foreign-controller-uid", metadata={"labels": {"controller-uid": "x"}}),
    create("foreign-job-name", metadata={"labels": {"job-name": "x"}}),
    create("bad-managed-by", managedBy="nobody"),
    Step("long-name", "POST", JOBS, job("x" * 64), JSON),
    Step("bad-name", "POST", JOBS, job("Bad_Name"), JSON),
    # -- unknown fields
    create("unknown-warn", color="red"),
    create("unknown-strict", query="?fieldValidation=Strict", color="red"),
    create("unknown-ignore", query="?fieldValidation=Ignore", color="red"),
    create("unknown-pod-warn", pod(nodeselector={"a": "b"})),
    create("unknown-pod-strict", pod(nodeselector={"a": "b"}), query="?fieldValidation=Strict"),
    create("unknown-container-strict", pod(container(resource={})), query="?fieldValidation=Strict"),
    create(
        "unknown-resources-strict",
        pod(container(resources={"limit": {GPU: 1}})),
        query="?fieldValidation=Strict",
    ),
    create(
        "two-unknown-strict", pod(container(img="x"), gpus=1), query="?fieldValidation=Strict", color="red"
    ),
    # -- updates of a Job that runs
    patch("image", "plain", template(containers=[container(image="other")])),
    patch("image-same", "plain", template(containers=[container()])),
    patch("node-selector", "plain", template(nodeSelector={"a": "b"})),
    patch("more-parallelism", "plain", {"parallelism": 2}),
    patch("more-completions", "plain", {"completions": 2}),
    patch("other-mode", "plain", {"completionMode": "Indexed"}),
    patch("other-backoff", "plain", {"backoffLimit": 1}),
    patch("other-selector", "plain", {"selector": {"matchLabels": {"a": "b"}}}),
    patch("late-managed-by", "none-at-once", {"managedBy": "kueue.x-k8s.io/multikueue"}),
    patch("other-managed-by", "of-kueue", {"managedBy": "example.com/other"}),
    patch("indexed-scaled", "indexed", {"completions": 4, "parallelism": 4}),
    patch("indexed-not-scaled", "indexed", {"completions": 5}),
    patch("suspend", "plain", {"suspend": True}),
    Step("replace", "PUT", f"{JOBS}/labelled", job("labelled", ttlSecondsAfterFinished=5), JSON),
    Step("replace-image", "PUT", f"{JOBS}/labelled", job("labelled", pod(container(image="other"))), JSON),
    # -- updates of a Job that is suspended and has not started
    patch("waiting-image", "suspended", template(containers=[container(image="other")])),
    patch("waiting-node-selector", "suspended", template(nodeSelector={"a": "b"})),
    patch("waiting-tolerations", "suspended", template(tolerations=[{"operator": "Exists"}])),
    patch("waiting-gates", "suspended", template(schedulingGates=[{"name": "example.com/gate"}])),
    patch("waiting-resources", "suspended", template(containers=[container(resources={"limits": {GPU: 1}})])),
    patch(
        "waiting-labels",
        "suspended",
        {"template": {"metadata": {"labels": {"more": "1"}, "annotations": {"a": "b"}}}},
    ),
    patch(
        "waiting-affinity",
        "suspended",
        template(
            affinity={
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]
                    }
                }
            }
        ),
    ),
    patch(
        "waiting-pod-affinity",
        "suspended",
        template(
            affinity={
                "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "a"}]}
            }
        ),
    ),
    patch("waiting-priority-class", "suspended", template(priorityClassName="high")),
    patch("waiting-service-account", "suspended", template(serviceAccountName="other")),
    patch("waiting-command", "suspended", template(containers=[container(command=["true"])])),
    patch("waiting-managed-by", "suspended-none", {"managedBy": "kueue.x-k8s.io/multikueue"}),
    patch(
        "suspend-with-resources",
        "full",
        {
            "suspend": True,
            **template(initContainers=[{"name": "first", "resources": {"limits": {"cpu": 2}}}]),
        },
    ),
    patch(
        "waiting-bad-resources",
        "suspended",
        template(containers=[container(resources={"requests": {GPU: 2}})]),
    ),
    patch("node-selector-and-start", "suspended", {"suspend": False, **template(nodeSelector={"a": "z"})}),
    patch("start", "suspended", {"suspend": False}),
    # -- and of one that is suspended again
    Step(
        "started",
        "PATCH",
        f"{JOBS}/suspended/status",
        {"status": {"startTime": "2026-01-01T00:00:00Z"}},
        MERGE,
    ),
    patch("suspend-again", "suspended", {"suspend": True}),
    patch("again-node-selector", "suspended", template(nodeSelector={"a": "c"})),
    Step("stopped", "PATCH", f"{JOBS}/suspended/status", {"status": {"startTime": None}}, MERGE),
    patch("stopped-node-selector", "suspended", template(nodeSelector={"a": "d"})),
)
