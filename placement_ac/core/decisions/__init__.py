"""Where decisions come from: `source` has the interface; each other module is a source, and one is in use."""

from typing import Any, Final

from placement_ac.core.decisions.ocm import OCM
from placement_ac.core.decisions.source import DecisionSource

SOURCE: Final[DecisionSource[Any]] = OCM
