"""
The scores that the controller reports for OCM: an AddOnPlacementScore in the namespace of each cluster.

Pure. `values` computes them, `history` and `damping` say which of them change, `planning` the writes.
"""
