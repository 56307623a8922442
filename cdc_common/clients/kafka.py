"""Connect to Kafka through librdkafka, in the same way in every program."""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.settings import KafkaSettings

_SAME_SECONDS = 30.0


class _RateLimit(logging.Filter):
    """librdkafka logs an unreachable broker several times a second. This passes one such line in _SAME_SECONDS; lines
    may differ in numbers. Its errors are warnings: it tries again, and what fails for good is raised.
    """

    def __init__(self) -> None:
        super().__init__()
        self._logged_at: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno == logging.ERROR:
            record.levelno, record.levelname = logging.WARNING, logging.getLevelName(logging.WARNING)
        words = re.sub(r", \d+ identical error\(s\) suppressed|\d+", "", record.getMessage())
        is_new = (
            abs(record.created - self._logged_at.get(words, -inf)) >= _SAME_SECONDS
        )  # the clock may have been set back
        if is_new:
            self._logged_at[words] = record.created
        return is_new


LIBRDKAFKA_LOGGER = logging.getLogger("librdkafka")
"""A client's `logger` argument: librdkafka's lines then go to the program's log when the client polls."""
LIBRDKAFKA_LOGGER.addFilter(_RateLimit())
LOG_LEVEL = 6
"""librdkafka's default."""
LOGGED: dict[str, object] = {"logger": LIBRDKAFKA_LOGGER, "log_level": LOG_LEVEL}
"""Properties that make a client log through the program's log. The program must poll it all the time."""
_LEVELS = (50, 50, 50, 40, 30, 20, 20, 10)  # logging's level of each syslog level, as in confluent-kafka
_LOG_SECONDS = 1.0

_SECRET_KEYS = frozenset({"sasl.password"})


class ClientConfig(dict[str, object]):
    """Properties of a librdkafka client; its repr masks the secrets, for logs and stack traces."""

    def __repr__(self) -> str:
        return repr({key: "***" if key in _SECRET_KEYS else value for key, value in self.items()})


# For a consumer that assigns its own Kafka partitions and commits nothing: librdkafka requires a group nevertheless,
# and looks up its coordinator. A consumer without permission for the group (the error's name) reads without one.
WITHOUT_GROUP: dict[str, object] = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
GROUP_REFUSED = "GROUP_AUTHORIZATION_FAILED"


def log_line(level: int, text: str) -> None:
    """Log a line of librdkafka, which a client of the native core has polled. level: a syslog level."""
    LIBRDKAFKA_LOGGER.log(_LEVELS[level & 7], "%s", text)


def client_config(settings: KafkaSettings) -> dict[str, object]:
    """The properties that all clients of these brokers share; each client adds its own. CdcError CONFIG_INVALID if
    librdkafka refuses them, which none of the clients would report as a wrong setting.
    """
    config = _properties(settings)
    _check_properties(settings)
    return config


def logged_admin(settings: KafkaSettings, own: Mapping[str, object]) -> AdminClient:
    """An admin client that logs through the program's log. A thread polls it: its owner waits for answers only.

    own: properties of this client.
    """
    client = AdminClient({**client_config(settings), **own, **LOGGED})  # type: ignore[dict-item]
    _log_pump.add(client)
    return client


class _LogPump:
    """A thread that polls admin clients, as long as they live, so that their log lines do not pile up."""

    def __init__(self) -> None:
        self._clients: WeakSet[AdminClient] = WeakSet()
        self._lock = threading.Lock()
        self._process = 0

    def add(self, client: AdminClient) -> None:
        with self._lock:
            self._clients.add(client)
            if self._process != os.getpid():  # a forked process has no threads
                self._process = os.getpid()
                threading.Thread(target=self._run, daemon=True, name="kafka-logs").start()

    def _run(self) -> None:
        while True:
            with self._lock:
                clients = list(self._clients)
            while clients:  # none is kept alive between two rounds
                clients.pop().poll(0)
            time.sleep(_LOG_SECONDS)


_log_pump = _LogPump()


def _properties(settings: KafkaSettings) -> ClientConfig:
    config = ClientConfig(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "security.protocol": settings.security_protocol,
            "socket.connection.setup.timeout.ms": max(1000, int(settings.connect_timeout_seconds * 1000)),
            "allow.auto.create.topics": False,  # a deleted topic would return with the brokers' default settings
        }
    )
    if settings.security_protocol.startswith("SASL"):
        config["sasl.mechanism"] = settings.sasl_mechanism
        config["sasl.username"] = settings.sasl_username
        config["sasl.password"] = settings.sasl_password.get_secret_value()
    if settings.security_protocol.endswith("SSL"):
        files = {
            "ssl.ca.location": settings.ssl_ca_file,
            "ssl.certificate.location": settings.ssl_identity_file,
            "ssl.key.location": settings.ssl_identity_file,
        }
        config.update({name: str(file) for name, file in files.items() if file is not None})
    return config


@lru_cache(maxsize=8)
def _check_properties(settings: KafkaSettings) -> None:
    """Make a client without brokers, which connects to nothing: only then does librdkafka look at files and logins."""
    properties: dict[str, Any] = {**_properties(settings), "bootstrap.servers": "", "log_level": 0}
    try:
        for name in ("ssl.ca.location", "ssl.certificate.location"):
            if name in properties and not Path(properties[name]).is_dir():
                Path(properties[name]).open("rb").close()  # librdkafka does not name the file
        Producer(properties)
    except OSError as error:
        raise _unusable(f"{error.filename}: {error.strerror}") from None
    except KafkaException as error:
        raise _unusable(error.args[0].str().removeprefix("Failed to create producer: ").strip()) from None


def _unusable(reason: str) -> CdcError:
    return CdcError(
        Code.CONFIG_INVALID,
        f"The settings of [kafka] cannot be used: {reason}.",
        "Correct kafka.security_protocol, sasl_mechanism, sasl_username and sasl_password (or sasl_password_file), "
        "ssl_ca_file, or ssl_identity_file (one PEM file with certificate and private key).",
    )
