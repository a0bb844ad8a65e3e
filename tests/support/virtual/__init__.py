"""Kueue, its workers and the controller on a virtual clock: no HTTP, no sleeping, no threads."""
