"""Measurements: they take minutes and are no tests."""
