"""kr8s: an object's life, `get` by name, labels, a wait and a watch."""

import kr8s
from kr8s.objects import ConfigMap, Job, new_class

NAME = "kr8s"

api = kr8s.api()
template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
job = Job(
    {"metadata": {"name": NAME, "namespace": "libraries"}, "spec": {"suspend": True, "template": template}}
)
job.create()
[found] = api.get("jobs", NAME, namespace="libraries")
assert found.status == {}
job.label({"of": NAME})
assert [one.name for one in api.get("jobs", label_selector={"of": NAME}, namespace="libraries")] == [NAME]
job.patch({"spec": {"parallelism": 2}})
job.refresh()
assert job.spec.parallelism == 2
job.patch({"status": {"active": 1}}, subresource="status")
job.wait("jsonpath='{.status.active}'=1", timeout=30)
job.delete(propagation_policy="Background")
assert not job.exists()

maps = ConfigMap({"metadata": {"name": NAME, "namespace": "libraries"}, "data": {"k": "1"}})
maps.create()
for event, one in api.watch("configmaps", namespace="libraries", field_selector={"metadata.name": NAME}):
    if event == "ADDED":
        maps.patch([{"op": "replace", "path": "/data/k", "value": "2"}], type="json")
    elif event == "MODIFIED":
        assert one.data.k == "2"
        maps.delete()
    else:
        break

MultiKueueConfig = new_class("MultiKueueConfig", "kueue.x-k8s.io/v1beta2", namespaced=False)
configs = MultiKueueConfig({"metadata": {"name": NAME}, "spec": {"clusters": ["a"]}})
configs.create()
assert [one.name for one in kr8s.get("multikueueconfigs.kueue.x-k8s.io", NAME)] == [NAME]
configs.delete()
