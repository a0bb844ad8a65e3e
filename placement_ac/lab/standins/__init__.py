"""Stand-ins for OCM's scheduler and Kueue's MultiKueue on the embedded hub."""
