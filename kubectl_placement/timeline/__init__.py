"""The timeline of a check: when each cluster was on Kueue's list, and its score."""
