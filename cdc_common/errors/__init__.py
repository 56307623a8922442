"""The code of each error, and its meaning, cause and fix."""
