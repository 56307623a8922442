"""Print the changes of a table, one JSON object a line, up to the present end of its topic.

read_topic.py BOOTSTRAP REGISTRY_URL TOPIC. It needs confluent-kafka and fastavro, and nothing of this project.
"""

import json
import math
import sys
import urllib.request
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import fastavro
from confluent_kafka import Consumer, KafkaError, TopicPartition


class Topic:
    def __init__(self, bootstrap: str, registry: str, name: str) -> None:
        self.bootstrap, self.registry, self.name = bootstrap, registry, name
        self.schemas: dict[int, Any] = {}

    def changes(self) -> Iterator[tuple[Any, Any]]:
        """Yield the key and the change of each message; None is a tombstone's change."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": "read-topic", "enable.auto.commit": False}
        consumer = Consumer(settings | {"isolation.level": "read_committed", "enable.partition.eof": True})
        partitions = consumer.list_topics(self.name).topics[self.name].partitions
        consumer.assign([TopicPartition(self.name, partition, 0) for partition in partitions])
        left = set(partitions)
        while left:
            message = consumer.poll(1.0)
            if message is None:
                continue
            error = message.error()
            if error is None:
                yield self.decode(message.key()), self.decode(message.value())
            elif error.code() == KafkaError._PARTITION_EOF:
                left.discard(message.partition())
            else:
                sys.exit(error.str())
        consumer.close()

    def decode(self, message: bytes | None) -> Any:
        """Read a message in Confluent's wire format: 0, the schema's id in 4 bytes, then Avro."""
        if message is None:
            return None
        number = int.from_bytes(message[1:5], "big")
        if number not in self.schemas:
            with urllib.request.urlopen(f"{self.registry}/schemas/ids/{number}") as answer:
                schema = without_logical_types(json.loads(json.load(answer)["schema"]))
            self.schemas[number] = fastavro.parse_schema(schema)
        return fastavro.schemaless_reader(BytesIO(message[5:]), self.schemas[number], None)


def without_logical_types(schema: Any) -> Any:
    """Python's dates end at the year 9999, so timestamps and dates stay numbers."""
    if isinstance(schema, dict):
        return {name: without_logical_types(part) for name, part in schema.items() if name != "logicalType"}
    return [without_logical_types(part) for part in schema] if isinstance(schema, list) else schema


def plain(value: Any) -> Any:
    """JSON has no bytes, no NaN and no infinities."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


if __name__ == "__main__":
    for key, change in Topic(*sys.argv[1:]).changes():
        known = change or {"op": None, "after": None}
        print(json.dumps({"key": plain(key), "op": known["op"], "after": plain(known["after"])}))
