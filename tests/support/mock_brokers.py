"""librdkafka's own broker in this process, told when to answer and with which error (rdkafka_mock.h)."""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING

from confluent_kafka import cimpl

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCE, ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN = 0, 24, 25, 26  # Kafka's ApiKey
_PRODUCER = 0
_BROKER = ctypes.c_int32(1)


class MockBroker:
    """`servers`: its bootstrap.servers."""

    def __init__(self, library: ctypes.CDLL, cluster: ctypes.c_void_p) -> None:
        self._library = library
        self._cluster = cluster
        self.servers: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def create_topic(self, name: str, partitions: int = 1) -> None:
        assert self._library.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1) == 0

    def answer(self, api_key: int, error: int, after_ms: int) -> None:
        """Answer the next request of a kind with an error (0: none), after a time."""
        self._library.rd_kafka_mock_broker_push_request_error_rtts(
            self._cluster, _BROKER, ctypes.c_int16(api_key), ctypes.c_size_t(1), error, after_ms
        )


@contextmanager
def mock_broker() -> Iterator[MockBroker]:
    library = ctypes.CDLL(cimpl.__file__)
    for name in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_mock_cluster_new"):
        getattr(library, name).restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"log_level", b"0", None, ctypes.c_size_t(0))
    client = ctypes.c_void_p(library.rd_kafka_new(_PRODUCER, conf, None, ctypes.c_size_t(0)))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(client, 1))
    try:
        yield MockBroker(library, cluster)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(client)
