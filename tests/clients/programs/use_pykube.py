"""pykube-ng: an object's life, labels, and a watch."""

import os

import pykube

NAME = "pykube"

api = pykube.HTTPClient(pykube.KubeConfig.from_file(os.environ["KUBECONFIG"]))
template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
metadata = {"name": NAME, "namespace": "libraries", "labels": {"of": NAME}}
manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
job = pykube.Job(api, manifest | {"spec": {"suspend": True, "template": template}})
job.create()
assert [one.name for one in pykube.Job.objects(api).filter(namespace="libraries", selector={"of": NAME})] == [
    NAME
]
assert pykube.Job.objects(api, namespace="libraries").get_by_name(NAME).obj["status"] == {}
job.annotations["a"] = "b"
job.update()
job.reload()
assert job.annotations == {"a": "b"}
job.scale(2)
assert job.parallelism == 2
job.delete(propagation_policy="Foreground")
assert not job.exists()

query = pykube.ConfigMap.objects(api, namespace="libraries").filter(field_selector={"metadata.name": NAME})
maps = pykube.ConfigMap(api, {"metadata": {"name": NAME, "namespace": "libraries"}, "data": {"k": "1"}})
since = query.response["metadata"]["resourceVersion"]
maps.create()
maps.patch({"data": {"k": "2"}})
maps.delete()
events = iter(query.watch(since=since))
assert [next(events).type for _ in range(3)] == ["ADDED", "MODIFIED", "DELETED"]
