"""The caller's own way from a job on the hub to its cluster and its Pods."""
