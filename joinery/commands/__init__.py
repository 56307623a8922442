"""The commands of joins."""
