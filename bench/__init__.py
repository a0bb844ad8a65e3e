"""
Five benches, and what they share.

`python -m bench` measures a change and a burst; `jobs` (on real servers `real_jobs`) the starts of jobs,
their copies, and the time for all; `flips` the wait for a start while the best cluster changes; `growth` how
the first one grows; `memory`. `profile` says where the time of a change goes. Shared are `scene` (the objects
on the hub), `jobs_scene` (jobs on a hub with workers), `processes` (hub, controller, floor), `driver` (plays
controller and floor) and `report` (arithmetic and tables).
"""
