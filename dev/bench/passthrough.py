"""The materializer's peer, for spark-submit: Spark's own connector reads a topic and writes it to another."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession


def main(bootstrap: str, source: str, target: str, checkpoint: str) -> None:
    """Copy until the process is killed."""
    spark = SparkSession.builder.appName("passthrough").getOrCreate()
    servers = {"kafka.bootstrap.servers": bootstrap}
    messages = spark.readStream.format("kafka").options(**servers, subscribe=source, startingOffsets="earliest").load()
    print("ready", flush=True)  # noqa: T201 - what the benchmark waits for
    query = messages.selectExpr("key", "value").writeStream.format("kafka").options(**servers, topic=target)
    query.option("checkpointLocation", checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
