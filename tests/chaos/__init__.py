"""Two replicas under random load and random faults: `make chaos`."""
