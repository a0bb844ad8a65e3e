"""`placement-ac timeline`: when each cluster was on Kueue's list, and its score."""
