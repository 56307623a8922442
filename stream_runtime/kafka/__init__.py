"""The Kafka clients of jobs.

The clients of a partition raise KafkaException, which the worker's loop turns into the source partition's CdcError.
What the driver calls raises CdcError.
"""

from cdc_common.clients.kafka_errors import ProducerExpiredError
from stream_runtime.kafka.clients import command_errors, driver_errors
from stream_runtime.kafka.partition_reader import read_last, read_offsets, read_partition, read_raw
from stream_runtime.kafka.positions import GroupPositions
from stream_runtime.kafka.producer import PRODUCER_DEFAULTS, FencingProducer, ProducerSettings, send_all
from stream_runtime.kafka.raw_reader import RawReader, ReadBudget
from stream_runtime.kafka.topic_reader import KafkaMessage, TopicReader
from stream_runtime.kafka.topics import Topics
from stream_runtime.kafka.unread import Retention, read_timestamps

__all__ = [
    "PRODUCER_DEFAULTS",
    "FencingProducer",
    "GroupPositions",
    "KafkaMessage",
    "ProducerExpiredError",
    "ProducerSettings",
    "RawReader",
    "ReadBudget",
    "Retention",
    "TopicReader",
    "Topics",
    "command_errors",
    "driver_errors",
    "read_last",
    "read_offsets",
    "read_partition",
    "read_raw",
    "read_timestamps",
    "send_all",
]
