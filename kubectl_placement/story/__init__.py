"""The story of a job: what happened to it and when, where it is, and what it waits for. Pure."""
