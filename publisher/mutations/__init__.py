"""A mutation becomes raw messages, in the native core or in Python. One that no schema fits is quarantined."""
