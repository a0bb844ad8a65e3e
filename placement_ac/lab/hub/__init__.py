"""The embedded hub: an in-memory Kubernetes API server in this process."""

from placement_ac.lab.hub.faults import Faults, RecordedRequest
from placement_ac.lab.hub.http_server import CONTEXT, write_kubeconfig
from placement_ac.lab.hub.server import Hub

__all__ = ["CONTEXT", "Faults", "Hub", "RecordedRequest", "write_kubeconfig"]
