"""The sidecar that writes padding so that commit log segments fill up within a configured time."""
