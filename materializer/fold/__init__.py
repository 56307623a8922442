"""The fold, a pure function: (state, raw messages, now) -> (writes, changes)."""
