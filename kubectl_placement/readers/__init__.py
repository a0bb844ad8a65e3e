"""Read a hub, a worker, a Prometheus or files. Only these modules and `cli` do I/O."""
