"""
The set-up of workers by OCM's ManifestWorks: namespaces, LocalQueues, ClusterQueues with quota, and flavors.

Pure. `manifests` has the content, from `template` or `hub_template`; `planning` the write; `readiness` says
whether the worker has it.
"""
