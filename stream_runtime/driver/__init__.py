"""The driver of a job: it plans batches, places partitions, stops those that fail, and shows how far they are."""
