"""lightkube: an object's life, server-side apply, a wait and a watch."""

from lightkube import Client
from lightkube.generic_resource import create_global_resource
from lightkube.models.batch_v1 import JobSpec
from lightkube.models.core_v1 import Container, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import PatchType

NAME = "lightkube"

client = Client(namespace="libraries", field_manager=NAME)
pod = PodSpec(containers=[Container(name="c", image="i")], restartPolicy="Never")
spec = JobSpec(template=PodTemplateSpec(spec=pod), suspend=True)
job = client.create(Job(metadata=ObjectMeta(name=NAME, namespace="libraries"), spec=spec))
assert job.status.active is None
client.patch(Job, NAME, {"metadata": {"labels": {"of": NAME}}})
assert [one.metadata.name for one in client.list(Job, labels={"of": NAME})] == [NAME]
failed = {"type": "FailureTarget", "status": "True", "reason": "r", "message": "m"}
client.patch(Job.Status, NAME, {"status": {"conditions": [failed]}}, patch_type=PatchType.MERGE)
assert client.wait(Job, NAME, for_conditions=["FailureTarget"]).metadata.name == NAME
client.delete(Job, NAME)

maps = ConfigMap(metadata=ObjectMeta(name=NAME, namespace="libraries"), data={"k": "1"})
version = client.apply(maps, force=True).metadata.resourceVersion
maps.data = {"k": "2"}
client.apply(maps)
client.delete(ConfigMap, NAME)
events = client.watch(ConfigMap, fields={"metadata.name": NAME}, resource_version=version)
assert [next(events)[0] for _ in range(2)] == ["MODIFIED", "DELETED"]

Configs = create_global_resource("kueue.x-k8s.io", "v1beta2", "MultiKueueConfig", "multikueueconfigs")
client.apply(Configs(metadata=ObjectMeta(name=NAME), spec={"clusters": ["a"]}), force=True)
assert client.get(Configs, NAME).spec == {"clusters": ["a"]}
client.delete(Configs, NAME)
assert NAME not in [one.metadata.name for one in client.list(Configs)]
