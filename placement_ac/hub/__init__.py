"""The embedded hub: a Kubernetes API server in this process, in memory."""

from placement_ac.hub.faults import Faults, Request
from placement_ac.hub.server import Hub

__all__ = ["Faults", "Hub", "Request"]
