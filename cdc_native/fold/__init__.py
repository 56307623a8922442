"""The fold of raw messages into changes: the plan of a table, its state, and the change messages."""
