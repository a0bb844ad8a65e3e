"""The caller's own access to the cluster of a job on the hub, and to its Pods."""
