"""The embedded hub: a Kubernetes API server in this process, in memory."""
