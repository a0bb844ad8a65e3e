"""
The set-up of workers by OCM's ManifestWorks: namespaces, LocalQueues, ClusterQueues with quota, and flavors.

Pure. What is wanted (`manifests`, from `template` or `hub_template`), the write (`planning`), and whether the
worker has it (`readiness`).
"""
