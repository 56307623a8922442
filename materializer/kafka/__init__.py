"""All of the materializer's Kafka.

A task lets KafkaException through, for Spark to run it again; what the driver calls raises CdcError.
"""

from materializer.kafka.clients import command_errors, driver_errors
from materializer.kafka.partition_reader import read_partition, read_raw
from materializer.kafka.positions import GroupPositions
from materializer.kafka.producer import DEFAULT_LIMITS, PartitionProducer, ProducerLimits, send_all
from materializer.kafka.raw_reader import RawReader, ReadBounds
from materializer.kafka.topic_reader import KafkaMessage, TopicReader
from materializer.kafka.topics import Topics

__all__ = [
    "DEFAULT_LIMITS",
    "GroupPositions",
    "KafkaMessage",
    "PartitionProducer",
    "ProducerLimits",
    "RawReader",
    "ReadBounds",
    "TopicReader",
    "Topics",
    "command_errors",
    "driver_errors",
    "read_partition",
    "read_raw",
    "send_all",
]
