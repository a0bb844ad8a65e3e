"""The embedded hub: an in-memory Kubernetes API server in this process."""

from placement_lab.hub.faults import Faults, RecordedRequest
from placement_lab.hub.http_server import CONTEXT, write_kubeconfig
from placement_lab.hub.server import Hub

__all__ = ["CONTEXT", "Faults", "Hub", "RecordedRequest", "write_kubeconfig"]
