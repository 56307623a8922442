"""Reads and sets the quotas of users in Kafka.

librdkafka has no requests for quotas (2.16): kafka-python sends these two. Its admin client has no method for them
either, but it has the messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError as ClientError
from kafka.errors import for_code
from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest

from cdc_common.errors.codes import CdcError, Code
from schematizer.topic_files.planning.things import Content, Found, Kind, Thing
from schematizer.topic_files.planning.wanted import CONSUMER_RATE, PRODUCER_RATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from cdc_common.settings import KafkaSettings

_USER = "user"
_ANY_NAME = 2  # of the protocol's match types
_RATES = (PRODUCER_RATE, CONSUMER_RATE)
_REFUSED_FIX = (
    "Grant the program's user Describe, DescribeConfigs and AlterConfigs on the cluster (docs/guides/secure.md)."
)
_AWAY_FIX = "Start the brokers, or correct kafka.bootstrap_servers and its security settings."


class Quotas:
    """The quotas of users of one cluster. A context manager: it connects when it is first used."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._client: KafkaAdminClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._client is not None:
            self._client.close()

    def read(self) -> dict[Thing, Found]:
        """Read the rates of all users that have any. CdcError if Kafka refuses or does not answer."""
        component = DescribeClientQuotasRequest.ComponentData(entity_type=_USER, match_type=_ANY_NAME, match=None)
        answer = self._ask("Quotas cannot be read", DescribeClientQuotasRequest(components=[component], strict=True))
        _check("Quotas cannot be read", answer)
        found: dict[Thing, Found] = {}
        for entry in answer.entries or ():
            rates = {value.key: value.value for value in entry.values if value.key in _RATES}
            if rates:
                found[Thing(Kind.QUOTA, entry.entity[0].entity_name)] = Found(rates)
        return found

    def set(self, changes: Mapping[str, Content]) -> None:
        """Set the rates of users; None removes one. CdcError if Kafka refuses or does not answer."""
        request = AlterClientQuotasRequest
        entries = [
            request.EntryData(
                entity=[request.EntryData.EntityData(entity_type=_USER, entity_name=user)],
                ops=[
                    request.EntryData.OpData(key=rate, value=float(value or 0), remove=value is None)
                    for rate, value in rates.items()
                ],
            )
            for user, rates in changes.items()
        ]
        answer = self._ask("Quotas cannot be set", request(entries=entries, validate_only=False))
        for entry in answer.entries:
            _check(f"The quota of {entry.entity[0].entity_name} cannot be set", entry)

    def _ask(self, problem: str, request: Any) -> Any:  # noqa: ANN401 - messages of the client
        try:
            if self._client is None:
                self._client = KafkaAdminClient(**_config(self._settings))
            manager = self._client._manager  # noqa: SLF001 - the one way to send a message without a method of its own
            return manager.run(manager.send, request)
        except ClientError as error:
            raise CdcError(Code.KAFKA_UNREACHABLE, f"{problem}: {error}.", _AWAY_FIX) from error


def _check(problem: str, answer: Any) -> None:  # noqa: ANN401 - as above
    if answer.error_code:
        name = for_code(answer.error_code).__name__
        raise CdcError(Code.KAFKA_REFUSED, f"{problem}: {name}: {answer.error_message or ''}.", _REFUSED_FIX)


def _config(settings: KafkaSettings) -> dict[str, Any]:
    """Return kafka-python's names of the settings. A key has the certificate's file: it is one PEM file."""
    config: dict[str, Any] = {
        "bootstrap_servers": settings.bootstrap_servers.split(","),
        "security_protocol": settings.security_protocol,
        "bootstrap_timeout_ms": int(settings.connect_timeout_seconds * 1000),
    }
    if settings.security_protocol.startswith("SASL"):
        config["sasl_mechanism"] = settings.sasl_mechanism
        config["sasl_plain_username"] = settings.sasl_username
        config["sasl_plain_password"] = settings.sasl_password.get_secret_value()
    if settings.security_protocol.endswith("SSL"):
        if settings.ssl_ca_file is not None:
            config["ssl_cafile"] = str(settings.ssl_ca_file)
        if settings.ssl_identity_file is not None:
            config["ssl_certfile"] = config["ssl_keyfile"] = str(settings.ssl_identity_file)
    return config
