"""
The status of CapacityProviders: the quota of the hub as the sum of that on a Placement's clusters.

Pure. `quota` has what each cluster adds and the sums; `planning` the status to write.
"""
