"""Read a hub, a worker, a Prometheus or files. Only these modules of `inspection` do I/O."""
