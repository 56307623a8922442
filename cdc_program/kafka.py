"""How every program reaches Kafka through librdkafka."""

from __future__ import annotations

import logging
import re
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdc_program.settings import KafkaSettings

_SAME_SECONDS = 30.0


class _Seldom(logging.Filter):
    """A broker that is away is told several times a second: lines that differ by numbers only come this seldom."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        words = re.sub(r", \d+ identical error\(s\) suppressed|\d+", "", record.getMessage())
        is_new = abs(record.created - self._said.get(words, -inf)) >= _SAME_SECONDS  # the clock may have been set back
        if is_new:
            self._said[words] = record.created
        return is_new


LIBRDKAFKA_LOGGER = logging.getLogger("librdkafka")
"""For a client's `logger` argument: librdkafka's own lines then go where the program's do (on the client's poll)."""
LIBRDKAFKA_LOGGER.addFilter(_Seldom())

_SECRET_KEYS = frozenset({"sasl.password"})


class ClientConfig(dict[str, object]):
    """Properties of a librdkafka client; its repr masks the secrets, so that a logged or traced one tells nothing."""

    def __repr__(self) -> str:
        return repr({key: "***" if key in _SECRET_KEYS else value for key, value in self.items()})


# For a consumer that is told its partitions and commits nothing: librdkafka wants a group of it all the same, and asks
# for its coordinator. Who may not use the group (the error's name) reads without one.
WITHOUT_GROUP: dict[str, object] = {"group.id": "unused", "enable.auto.commit": False, "enable.partition.eof": True}
GROUP_REFUSED = "GROUP_AUTHORIZATION_FAILED"


def client_config(settings: KafkaSettings) -> dict[str, object]:
    """The properties that every client of these brokers has; add the client's own to it."""
    config = ClientConfig(
        {
            "bootstrap.servers": settings.bootstrap_servers,
            "security.protocol": settings.security_protocol,
            "socket.connection.setup.timeout.ms": max(1000, int(settings.connect_timeout_seconds * 1000)),
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
