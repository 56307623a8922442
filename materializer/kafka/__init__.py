"""The materializer's Kafka clients.

In a task KafkaException passes through, and Spark runs the task again. What the driver calls raises CdcError.
"""

from materializer.kafka.clients import command_errors, driver_errors
from materializer.kafka.partition_reader import read_partition, read_raw
from materializer.kafka.positions import GroupPositions
from materializer.kafka.producer import PRODUCER_DEFAULTS, PartitionProducer, ProducerSettings, send_all
from materializer.kafka.raw_reader import RawReader, ReadBudget
from materializer.kafka.topic_reader import KafkaMessage, TopicReader
from materializer.kafka.topics import Topics

__all__ = [
    "PRODUCER_DEFAULTS",
    "GroupPositions",
    "KafkaMessage",
    "PartitionProducer",
    "ProducerSettings",
    "RawReader",
    "ReadBudget",
    "TopicReader",
    "Topics",
    "command_errors",
    "driver_errors",
    "read_partition",
    "read_raw",
    "send_all",
]
