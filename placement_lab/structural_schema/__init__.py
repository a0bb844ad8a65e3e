"""Structural schemas of CRDs: defaults, pruning, validation, CEL rules; pure, for the hub."""
