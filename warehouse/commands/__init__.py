"""Commands beside `run`: they read what is there, and change nothing."""
