"""The archive's peer, for spark-submit: the same rows by Spark's connector and `from_avro`, as Parquet or into Iceberg.

It knows one schema. Its files have the archive's columns, buckets and compression.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

HEADER = 5  # bytes
REST = 2**30
CATALOG = "spark.sql.catalog.lake"
TABLE = "lake.shop.orders"


def main(bootstrap: str, topic: str, sink: str, folder: str, schema_file: str, seconds: str) -> None:  # noqa: PLR0913, PLR0917 - of the command line
    """Archive until the process is killed. sink: `parquet` or `iceberg`. seconds: between two micro-batches."""
    schema = Path(schema_file).read_text(encoding="utf-8")
    spark = (
        SparkSession.builder.appName(sink)
        .config("spark.sql.parquet.compression.codec", "zstd")
        .config("spark.sql.session.timeZone", "UTC")
        .config(CATALOG, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{CATALOG}.type", "hadoop")
        .config(f"{CATALOG}.warehouse", f"{folder}/lake")
        .getOrCreate()
    )
    servers = {"kafka.bootstrap.servers": bootstrap}
    messages = spark.readStream.format("kafka").options(**servers, subscribe=topic, startingOffsets="earliest").load()
    made = rows(messages, schema)
    print("ready", flush=True)  # noqa: T201 - what the benchmark waits for
    if sink == "iceberg":
        empty = spark.createDataFrame([], made.schema)
        empty.writeTo(TABLE).partitionedBy(f.partitioning.hours("_event_time")).create()
        query = writer_of(made, folder, seconds).option("fanout-enabled", "true").toTable(TABLE)
    else:
        buckets = {"event_date": f.to_date("_event_time"), "event_hour": f.hour("_event_time")}
        query = writer_of(made.withColumns(buckets), folder, seconds).partitionBy(*buckets).start(f"{folder}/lake")
    query.awaitTermination()


def writer_of(made: DataFrame, folder: str, seconds: str) -> DataStreamWriter:
    """A writer of the rows, in micro-batches."""
    writer = made.writeStream.trigger(processingTime=f"{seconds} seconds")
    return writer.option("checkpointLocation", f"{folder}/checkpoint")


def rows(messages: DataFrame, schema: str) -> DataFrame:
    """The archive's columns."""
    is_envelope = json.loads(schema)["name"] == "Envelope"
    read = messages.select("*", from_avro(f.substring("value", HEADER + 1, REST), schema).alias("m"))
    own: list[Column] = [
        f.col("topic").alias("_kafka_topic"),
        f.col("partition").alias("_kafka_partition"),
        f.col("offset").alias("_kafka_offset"),
        f.col("timestamp").alias("_kafka_timestamp"),
        (f.timestamp_micros("m.source.ts_us") if is_envelope else f.col("m.created_at")).alias("_event_time"),
        f.conv(f.hex(f.substring("value", 2, HEADER - 1)), 16, 10).cast("long").alias("_schema_id"),
    ]
    if is_envelope:
        own += [f.col("m.op").alias("_op"), f.col("m.source.row_sequence").alias("_row_sequence")]
        own += [f.col("m.source.ts_us").alias("_ts_us")]
    else:
        own += [f.col("key").alias("_kafka_key")]
    return read.select(*own, "m.*")


if __name__ == "__main__":
    main(*sys.argv[1:])
