"""
The capacity of the workers as tables: by cluster, Placement, queue or team.

Pure.
"""
