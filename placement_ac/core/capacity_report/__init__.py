"""
The capacity of the workers: how much of each resource their queues have, use and have left.

Pure. `model` has the numbers, `compute` derives them from the queues as the dispatcher does, `changes` says
whether they differ by a step, `document` writes and reads them as JSON.
"""
