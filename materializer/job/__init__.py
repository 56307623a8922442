"""The Spark job: the driver plans batches, places raw partitions, and workers fold them."""
