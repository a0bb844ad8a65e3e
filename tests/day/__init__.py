"""A day in virtual time: a fleet, its jobs and its troubles, and what must hold at every second of it."""
