"""Clients of others on the embedded hub, each in an environment of its own (`make test-clients`)."""
