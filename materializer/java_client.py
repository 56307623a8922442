"""The settings of Kafka for Spark's own client, which is Java's: options of its Kafka source."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdc_program.settings import KafkaSettings

_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def source_options(settings: KafkaSettings) -> dict[str, str]:
    """The `kafka.…` options that mean what the settings mean."""
    options = {
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "kafka.security.protocol": settings.security_protocol,
    }
    if settings.security_protocol.startswith("SASL"):
        module = _LOGIN_MODULES.get(settings.sasl_mechanism, _LOGIN_MODULES["PLAIN"])
        user, password = _quoted(settings.sasl_username), _quoted(settings.sasl_password.get_secret_value())
        options["kafka.sasl.mechanism"] = settings.sasl_mechanism
        options["kafka.sasl.jaas.config"] = f"{module} required username={user} password={password};"
    if settings.security_protocol.endswith("SSL"):
        for store, file in (("truststore", settings.ssl_ca_file), ("keystore", settings.ssl_identity_file)):
            if file is not None:
                options[f"kafka.ssl.{store}.type"] = "PEM"
                options[f"kafka.ssl.{store}.location"] = str(file)
    return options


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
