"""
Whatever happens to hub, cluster and worker: a ManifestWork harms nothing, and is written only with need.

OCM's work agent is a model of a few lines: it applies what it finds, keeps what others have set, and deletes
what it owns and no longer finds. After each change it reports, a plan is made, and it acts, until all rests.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from placement_ac.core.api.decode import managed_cluster, manifest_work
from placement_ac.core.api.fields import format_time
from placement_ac.core.api.objects import ManifestKey
from placement_ac.core.inputs.worker_setup import (
    HubClusterQueue,
    SetupUsage,
    WorkerSetupInputs,
    WorkerSetupPolicy,
)
from placement_ac.core.plan.diff import Apply, Delete
from placement_ac.core.worker_setup.manifests import key_of_manifest
from placement_ac.core.worker_setup.planning import plan_worker_setup

if TYPE_CHECKING:
    from placement_ac.core.inputs.state import Since

Object = dict[str, Any]
GPU = "nvidia.com/gpu"
RETENTION = 60.0
WRITES_MAX = 2
"""For one change: the object, and a rule that keeps what turns out to be somebody else's."""
TEMPLATE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: all}}
spec:
  resourceGroups:
  - coveredResources: [{gpu}]
    flavors: [{{name: f, resources: [{{name: {gpu}, nominalQuota: "{{allocatable.{gpu} * {factor}}}"}}]}}]
"""
NAMES = st.sampled_from(["a", "b"])
QUEUES = st.sampled_from(["q1", "q2"])
AMOUNTS = st.integers(0, 8)


class Worker(RuleBasedStateMachine):
    """A hub with two ClusterQueues, one cluster, and its worker."""

    @initialize()
    def start(self) -> None:
        self.now = 0.0
        self.began: dict[Since, float] = {}
        self.selected, self.joined, self.template = True, True, ""
        self.gpus = 8
        self.local: dict[str, set[tuple[str, str]]] = {"q1": {("a", "l")}, "q2": set()}
        self.work: Object | None = None
        self.there: dict[ManifestKey, Object] = {}
        """The objects on the worker."""
        self.owned: set[ManifestKey] = set()
        self.others: dict[ManifestKey, Object] = {}
        """Those that somebody else has made, as they are to stay."""
        self.created: dict[ManifestKey, float] = {}
        self.jobs: dict[ManifestKey, int] = {}
        """LocalQueue → its jobs."""
        self.reserved = 0
        self.settle()

    # -- what may happen

    @rule(name=QUEUES, namespace=NAMES)
    def add_local_queue(self, name: str, namespace: str) -> None:
        if all((namespace, "l") not in queues for queues in self.local.values()):
            self.local[name].add((namespace, "l"))
            self.settle()

    @rule(name=QUEUES, namespace=NAMES)
    def remove_local_queue(self, name: str, namespace: str) -> None:
        self.local[name].discard((namespace, "l"))
        self.settle()

    @rule(namespace=NAMES, queue=st.sampled_from(["q1", "q2", "theirs"]))
    def somebody_makes_a_local_queue(self, namespace: str, queue: str) -> None:
        key = "LocalQueue", namespace, "l"
        if key not in self.there:
            self.now += 1.0
            self.others[key] = self.there[key] = {"clusterQueue": queue}
            self.created[key] = self.now
            self.now += 1.0
            self.settle()

    @rule(namespace=NAMES, jobs=st.integers(0, 2))
    def jobs_come_and_end(self, namespace: str, jobs: int) -> None:
        if ("LocalQueue", namespace, "l") in self.there:
            self.jobs["LocalQueue", namespace, "l"] = jobs
            self.settle()

    @rule(amount=AMOUNTS)
    def quota_is_used(self, amount: int) -> None:
        self.reserved = amount
        self.settle()

    @rule(amount=AMOUNTS, seconds=st.sampled_from([1.0, 400.0]))
    def the_cluster_changes(self, amount: int, seconds: float) -> None:
        self.gpus = amount
        self.settle()
        self.now += seconds
        self.settle()

    @rule(
        text=st.sampled_from(
            ["", TEMPLATE.format(gpu=GPU, factor=0.5), TEMPLATE.format(gpu=GPU, factor=1), "a: ["]
        )
    )
    def the_template_changes(self, text: str) -> None:
        self.template = text
        self.settle()

    @rule(seconds=st.sampled_from([1.0, 2 * RETENTION]))
    def the_cluster_is_deselected(self, seconds: float) -> None:
        self.selected = False
        self.settle()
        self.now += seconds
        self.settle()

    @rule()
    def the_cluster_is_selected(self) -> None:
        self.selected = True
        self.settle()

    # -- what must hold

    @invariant()
    def what_others_made_is_as_they_made_it(self) -> None:
        for key, spec in getattr(self, "others", {}).items():
            assert self.there.get(key) == spec, key

    @invariant()
    def a_selected_cluster_has_what_the_hub_has(self) -> None:
        if getattr(self, "selected", False) and self.template != "a: [":
            for queues in self.local.values():
                for namespace, name in queues:
                    assert ("LocalQueue", namespace, name) in self.there
                    assert ("Namespace", "", namespace) in self.there

    # -- the controller, and OCM's agent

    def settle(self) -> None:
        """Let the agent report, the controller plan and the agent act until nothing changes."""
        self.report()
        writes = 0
        while self.reconcile():
            writes += 1
            assert writes <= WRITES_MAX, "it is written again and again"
            self.agent()
            self.report()

    def reconcile(self) -> bool:
        inputs = self.inputs()
        plan = plan_worker_setup(inputs)
        self.began = {since: self.began.get(since, self.now) for since in plan.lasting}
        for action in [action for phase in plan.phases for action in phase]:
            if isinstance(action, Apply):
                self.write(action.body)
            elif isinstance(action, Delete):
                self.delete()
        return bool(plan.phases)

    def inputs(self) -> WorkerSetupInputs:
        cluster = {"metadata": {"name": "c"}, "status": {"allocatable": {GPU: str(self.gpus)}}}
        quota = [{"name": GPU, "nominalQuota": "10"}]
        groups = [{"coveredResources": [GPU], "flavors": [{"name": "f", "resources": quota}]}]
        template = "t" if self.template else ""
        return WorkerSetupInputs(
            cluster="c",
            now=self.time(self.now),
            policy=WorkerSetupPolicy(enabled=True, retention=RETENTION),
            managed_cluster=managed_cluster(cluster, with_allocatable=True),
            queues=tuple(
                HubClusterQueue(name, {"resourceGroups": groups}, tuple(sorted(queues)), template)
                for name, queues in self.local.items()
            ),
            flavors={"f": {}},
            templates={"t": self.template},
            work=manifest_work(self.work) if self.work else None,
            usage=SetupUsage({"u": "p"}, selected=self.selected),
            ages={since: self.now - began for since, began in self.began.items()},
        )

    def write(self, body: Object) -> None:
        before = self.work or {
            "metadata": {"generation": 0, "creationTimestamp": format_time(self.time(self.now))}
        }
        meta = before["metadata"] | body["metadata"]
        meta |= {"uid": "w", "generation": before["metadata"]["generation"] + 1, "managedFields": MINE}
        self.work = before | {"metadata": meta, "spec": body["spec"]}

    def delete(self) -> None:
        for key in set(self.owned):
            self.remove(key)
        self.work = None

    def agent(self) -> None:
        if self.work is None:
            return
        spec = self.work["spec"]
        rules = spec["deleteOption"]["selectivelyOrphans"]["orphaningRules"]
        kept = {(PLURALS[rule["resource"]], rule.get("namespace", ""), rule["name"]) for rule in rules}
        wanted = {key_of_manifest(one): one for one in spec["workload"]["manifests"]}
        for key in self.owned - wanted.keys():
            self.remove(key)
        for key, manifest in wanted.items():
            content = manifest.get("spec", {})
            if key[0] == "Deployment" or (key in self.others and self.others[key] != content):
                continue
            if key not in self.there:
                self.created[key] = self.now
            if key in self.reported:  # before, its use is not known
                self.keeps_what_is_used(key, content)
            self.there[key] = content
            (self.owned.discard if key in kept else self.owned.add)(key)
        self.work["status"] = {
            "conditions": [{"type": "Applied", "observedGeneration": self.work["metadata"]["generation"]}]
        }

    def keeps_what_is_used(self, key: ManifestKey, content: Object) -> None:
        if key[0] == "ClusterQueue" and key in self.there:
            before, after = quota_of(self.there[key]), quota_of(content)
            assert after >= min(before, self.reserved), (before, after, self.reserved)

    def remove(self, key: ManifestKey) -> None:
        assert key[0] == "LocalQueue", "only LocalQueues go"
        assert key not in self.others
        assert not self.jobs.get(key), "a LocalQueue with jobs goes"
        self.owned.discard(key)
        self.there.pop(key, None)
        self.jobs.pop(key, None)

    def report(self) -> None:
        """Write into the status what is there."""
        self.reported: set[ManifestKey] = set()
        if self.work is None or "status" not in self.work:
            return
        states = []
        for manifest in self.work["spec"]["workload"]["manifests"]:
            key = key_of_manifest(manifest)
            applied = self.there.get(key) == manifest.get("spec", {}) or key[0] == "Deployment"
            conditions = [
                {"type": "Applied", "status": str(applied), "message": "" if applied else "1 conflict"},
                {"type": "Available", "status": str(key in self.there)},
            ]
            values = [{"name": name, "fieldValue": field} for name, field in self.values_of(key).items()]
            meta = {"kind": key[0], "namespace": key[1], "name": key[2]}
            self.reported.add(key)
            states.append(
                {"resourceMeta": meta, "conditions": conditions, "statusFeedback": {"values": values}}
            )
        self.work["status"] |= {"resourceStatus": {"manifests": states}}

    def values_of(self, key: ManifestKey) -> dict[str, Object]:
        if key not in self.there:
            return {}
        if key[0] == "ClusterQueue":
            return {f"f/{GPU}": {"string": str(self.reserved)}}
        if key[0] != "LocalQueue":
            return {}
        jobs = self.jobs.get(key, 0)
        created = {"string": format_time(self.time(self.created[key]))}
        return {"created": created, "pending": {"integer": 0}, "reserving": {"integer": jobs}}

    @staticmethod
    def time(seconds: float) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


MINE = [{"manager": "placement-ac", "operation": "Apply", "fieldsV1": {}}]
PLURALS = {
    "namespaces": "Namespace",
    "resourceflavors": "ResourceFlavor",
    "clusterqueues": "ClusterQueue",
    "localqueues": "LocalQueue",
    "deployments": "Deployment",
}


def quota_of(cluster_queue: Object) -> int:
    return int(cluster_queue["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"])


TestWorker = Worker.TestCase
TestWorker.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
