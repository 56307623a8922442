"""Watson: pages that show what the catalogue knows, rendered here, for people."""
