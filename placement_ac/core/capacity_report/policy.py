"""
The admin's choices about the capacity that is reported.

Plain data.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CapacityPolicy:
    """Whether and where the capacity of the workers is published."""

    enabled: bool = False
    namespace: str = "kueue-system"
    """Of the ConfigMaps: that of the Lease."""
    gpus: tuple[str, ...] = ()
    """The resources that are GPUs."""
    reads_jobs: bool = False
    """Whether it is known what Workloads ask for: only with our dispatcher."""
