"""
The content of the commands that only read a hub: its state, the reasons for it, the effect of a change.

Writes nothing. Decisions come from the controller's own code (`cache`, `core`) and from OCM's scheduler
(`scheduling`); there is no second implementation of either.
"""
