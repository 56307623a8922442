"""Which of two writes wins, what a compaction removes, and what the rows of system_schema add up to."""
