"""
Errors of the scheduler's steps.

Raised within this package only: `engine.schedule` converts them to conditions
or to a result that changes nothing.
"""


class MisconfiguredError(ValueError):
    """The Placement cannot be followed; OCM's status code `Misconfigured`.

    `plugin` is the step that objects, empty where OCM leaves it empty.
    """

    def __init__(self, plugin: str, message: str) -> None:
        super().__init__(message)
        self.plugin = plugin


class BrokenSetError(ValueError):
    """A ManagedClusterSet cannot be read: OCM then writes nothing for the Placement and tries again."""
