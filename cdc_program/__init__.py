"""What every program has: settings, error codes, logging and the command line's common parts."""
