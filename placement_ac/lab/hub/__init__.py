"""The embedded hub: a Kubernetes API server in this process, in memory."""

from placement_ac.lab.hub.faults import Faults, RecordedRequest
from placement_ac.lab.hub.server import CONTEXT, Hub

__all__ = ["CONTEXT", "Faults", "Hub", "RecordedRequest"]
