"""Which running jobs are moved to another cluster, why, and why not the others: within a budget."""
