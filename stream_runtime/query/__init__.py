"""The streaming query of a job: Spark's session, its source and its tasks."""
