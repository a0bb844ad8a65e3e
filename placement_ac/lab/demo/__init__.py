"""The three stories, played on an embedded hub with the real controller."""
