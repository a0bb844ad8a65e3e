"""The embedded hub: a Kubernetes API server in this process, in memory."""

from placement_ac.lab.hub.faults import Faults, Request
from placement_ac.lab.hub.server import CONTEXT, Hub

__all__ = ["CONTEXT", "Faults", "Hub", "Request"]
