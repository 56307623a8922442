"""The materializer's Kafka clients.

The clients of a raw partition raise KafkaException, which the worker's loop turns into the raw partition's CdcError.
What the driver calls raises CdcError.
"""

from materializer.kafka.clients import ProducerExpiredError, command_errors, driver_errors
from materializer.kafka.partition_reader import read_partition, read_raw
from materializer.kafka.positions import GroupPositions
from materializer.kafka.producer import PRODUCER_DEFAULTS, PartitionProducer, ProducerSettings, send_all
from materializer.kafka.raw_reader import RawReader, ReadBudget
from materializer.kafka.topic_reader import KafkaMessage, TopicReader
from materializer.kafka.topics import Topics
from materializer.kafka.unread import Retention, read_timestamps

__all__ = [
    "PRODUCER_DEFAULTS",
    "GroupPositions",
    "KafkaMessage",
    "PartitionProducer",
    "ProducerExpiredError",
    "ProducerSettings",
    "RawReader",
    "ReadBudget",
    "Retention",
    "TopicReader",
    "Topics",
    "command_errors",
    "driver_errors",
    "read_partition",
    "read_raw",
    "read_timestamps",
    "send_all",
]
