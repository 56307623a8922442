"""The frame of every program: command line, log, operations port and status."""
