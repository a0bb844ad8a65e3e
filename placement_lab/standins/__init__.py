"""Stand-ins for OCM's and Kueue's controllers, which run against the embedded hub."""
