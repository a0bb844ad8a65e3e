"""Where decisions come from: `source` has the interface; each other module is a source, and one is in use."""

from placement_ac.core.decisions.ocm import OCM as SOURCE

__all__ = ["SOURCE"]
