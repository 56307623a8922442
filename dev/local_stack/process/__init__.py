"""Child processes, their folders, ports and locks."""
