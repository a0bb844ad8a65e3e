"""A hub as it was read: its objects, the controller's settings, and the controller's view of both."""
