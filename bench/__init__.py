"""
The benchmarks: a module for each question, and what they share.

Shared are `scene` (what is on the hub), `jobs` (jobs on a hub with workers), `processes` (hub, controller,
floor), `driver` (plays controller and floor) and `report` (arithmetic and tables). The random faults of
`make chaos` are in `tests/chaos`.
"""
