"""The commands beside `run`: they work on quarantined mutations, ask for a snapshot, or observe the log."""
