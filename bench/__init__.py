"""
The benchmarks: a module for each question, and what they share.

Shared are `scene` (checks on a hub), `jobs` (jobs on a hub with workers), `objects` (what a hub has from the
start), `hubs`, `processes`, `driver` (plays controller and floor), `measure` (arithmetic) and `report`. The
random faults of `make chaos` are in `tests/chaos`.
"""
