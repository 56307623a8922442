"""The transformer's peer, for spark-submit: the same five steps by Spark's connector, `from_avro` and `to_avro`.

It knows one schema of the source and one of the target, and takes over the keys with the target's header.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro, to_avro

if TYPE_CHECKING:
    from pyspark.sql import Column

HEADER = 5  # bytes
REST = 2**30


def main(bootstrap: str, source: str, target: str, checkpoint: str, plan: str) -> None:
    """Transform until the process is killed. plan: a JSON file with both schemas, and the target's headers."""
    known = json.loads(Path(plan).read_text(encoding="utf-8"))
    spark = SparkSession.builder.appName("avro").getOrCreate()
    servers = {"kafka.bootstrap.servers": bootstrap}
    messages = spark.readStream.format("kafka").options(**servers, subscribe=source, startingOffsets="earliest").load()
    read = messages.select("key", from_avro(f.substring("value", HEADER + 1, REST), known["source"]).alias("m"))
    envelope = f.struct(
        image("m.before").alias("before"), image("m.after").alias("after"), *(f"m.{name}" for name in known["rest"])
    )
    made = read.select(
        f.concat(f.unhex(f.lit(known["key_header"])), f.substring("key", HEADER + 1, REST)).alias("key"),
        f.concat(f.unhex(f.lit(known["value_header"])), to_avro(envelope, known["target"])).alias("value"),
    )
    print("ready", flush=True)  # noqa: T201 - what the benchmark waits for
    query = made.writeStream.format("kafka").options(**servers, topic=target)
    query.option("checkpointLocation", checkpoint).start().awaitTermination()


def image(name: str) -> Column:
    """A row after the steps of dev.bench.transformer, null if it is null."""
    row = f.col(name)
    status = row["status"]
    names = f.when(status == 0, "new").when(status == 3, "paid").otherwise(status.cast("string"))
    made = f.struct(
        row["id"].alias("id"),
        f.when(row["email"].isNotNull(), "***").alias("email"),
        f.lit(None).cast("string").alias("city"),
        f.when(status.isNotNull(), names).alias("status"),
        (row["bits"].bitwiseAND(1) != 0).alias("gift"),
        (row["bits"].bitwiseAND(4) != 0).alias("express"),
        row["total"].alias("total"),
        row["at"].alias("at"),
    )
    return f.when(row.isNotNull(), made)


if __name__ == "__main__":
    main(*sys.argv[1:])
