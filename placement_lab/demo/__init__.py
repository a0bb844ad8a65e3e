"""The demo's stories: they run the real controller on an embedded hub."""
