"""Read the changes of a table with Spark's from_avro, and print them, one JSON object a line.

read_in_spark.py BOOTSTRAP REGISTRY_URL TOPIC. It needs pyspark with spark-avro (`PYSPARK_SUBMIT_ARGS`), confluent-kafka
and fastavro. Dates and timestamps stay numbers, as in read_topic.py.
"""

import json
import sys
import urllib.request
from collections import defaultdict
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession
from read_topic import Topic, plain, without_logical_types

sys.path.append(str(Path(__file__).parents[2] / "declarations"))

from spark_changes import read_changes

Shown = dict[int, tuple[str, Any]]


class Bytes(Topic):  # type: ignore[misc] # mypy does not see this folder
    """A topic whose messages stay bytes."""

    def decode(self, message: bytes | None) -> Any:
        return message


def schema_text(registry: str, number: int) -> str:
    with urllib.request.urlopen(f"{registry}/schemas/ids/{number}") as answer:
        return json.dumps(without_logical_types(json.loads(json.load(answer)["schema"])))


def python(value: Any) -> Any:
    if isinstance(value, Row):
        return {name: python(item) for name, item in value.asDict(recursive=False).items()}
    if isinstance(value, dict):
        return {name: python(item) for name, item in value.items()}
    if isinstance(value, list):
        return [python(item) for item in value]
    return bytes(value) if isinstance(value, bytearray) else value


def shown(values: dict[int, bytes], registry: str) -> Shown:
    """The operation and the row of each value, read by the schema that it names."""
    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    of_schema: dict[int, list[tuple[int, bytearray]]] = defaultdict(list)
    for place, value in values.items():
        of_schema[int.from_bytes(value[1:5], "big")].append((place, bytearray(value)))
    found: Shown = {}
    for number, rows in of_schema.items():
        frame = read_changes(spark.createDataFrame(rows, "place int, value binary"), schema_text(registry, number))
        for place, op, after in frame.select("place", "change.op", "change.after").collect():
            found[place] = op, python(after)
    return found


if __name__ == "__main__":
    messages = list(Bytes(*sys.argv[1:]).changes())
    changes = shown({place: value for place, (_, value) in enumerate(messages) if value is not None}, sys.argv[2])
    keys = Topic(*sys.argv[1:])
    for place, (key, _) in enumerate(messages):
        op, after = changes.get(place, (None, None))
        print(json.dumps({"key": plain(keys.decode(key)), "op": op, "after": plain(after)}))
