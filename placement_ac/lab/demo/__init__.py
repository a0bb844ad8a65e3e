"""The three demo stories: they run the real controller on an embedded hub."""
