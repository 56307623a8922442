"""The join of one partition of the internal topic: a pure function from a state and messages to writes and changes."""
