"""The Spark job: the driver plans batches and places raw partitions, and workers fold them."""
