"""Read the changes of one table with confluent-kafka alone: consumer.py BOOTSTRAP REGISTRY_URL TOPIC"""

import sys
from contextlib import suppress

from confluent_kafka import Consumer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

if len(sys.argv) != 4:
    sys.exit(f"usage: {__doc__}")
bootstrap, registry, topic = sys.argv[1:]
decode = AvroDeserializer(SchemaRegistryClient({"url": registry}))
settings = {"bootstrap.servers": bootstrap, "group.id": "example", "isolation.level": "read_committed"}
consumer = Consumer(settings | {"auto.offset.reset": "earliest", "enable.auto.commit": False})
consumer.subscribe([topic])
with suppress(KeyboardInterrupt):
    while True:
        message = consumer.poll(1.0)
        if message is None:
            continue
        if message.error():
            print(message.error().str(), file=sys.stderr)  # such as a topic that does not exist
            continue
        key = decode(message.key(), SerializationContext(topic, MessageField.KEY))
        value = decode(message.value(), SerializationContext(topic, MessageField.VALUE))
        print(key, value, flush=True)
consumer.close()
