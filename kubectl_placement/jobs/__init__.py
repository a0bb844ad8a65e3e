"""Which cluster a job goes to, by the controller's own rules."""
