"""When a job that waits will start: run times, and a simulation of its queue."""
