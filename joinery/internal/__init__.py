"""The messages of the internal topic, in bytes."""
