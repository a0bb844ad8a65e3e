"""
Is this hub set up right? Ordered rules over what was found on it: each yields what it found, or what is
wrong with it and the command that cures it.

Pure: no clock, no I/O. What could not be read is told as such, and is never held against the hub.
"""
