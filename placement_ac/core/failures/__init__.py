"""Clusters where jobs keep failing: which ends count against a cluster, and when it gets no new jobs."""
