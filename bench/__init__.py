"""Measurements of the controller; they take minutes and are not tests."""
