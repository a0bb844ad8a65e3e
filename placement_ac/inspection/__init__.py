"""
Look at a hub and say what is, why, and what would be: what the reading commands are made of.

Never writes. Decides by the controller's own thinking part (`world`, `plan`, `diff`) and by OCM's scheduler
(`scheduling`): there is no second implementation of either.
"""
