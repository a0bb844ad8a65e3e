"""When a cluster goes into maintenance, as an admin has announced it; no I/O, no clock."""
