"""
`placement-ac doctor`: ordered rules that check the setup of a hub. Each finding of a problem has the command
that fixes it.

Pure: no clock, no I/O. Objects that could not be read are reported as unknown, never as a failure.
"""
