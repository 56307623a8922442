"""Refuses settings that are valid by themselves, where one would silently switch off another."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cdc_common.settings import Settings

_TLS_FILES = ("ssl_ca_file", "ssl_identity_file")


def check_combinations(settings: Settings, origins: Mapping[str, str]) -> None:
    """`origins`: of each `table.key`. CdcError CONFIG_INVALID for the first one that has no effect."""
    checks = (_without_tls(settings), _without_login(settings), _inside_of_cdc_raw(settings))
    for name, why, fix in chain(*checks, _compaction(settings, origins)):
        raise CdcError(Code.CONFIG_INVALID, f"{name} ({origins[name]}) {why}.", fix)


def _without_tls(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Files for TLS, where the connection would not be encrypted."""
    protocol = settings.kafka.security_protocol
    tables = (
        (settings.cassandra, "cassandra", settings.cassandra.ssl, "cassandra.ssl is false", "cassandra.ssl = true"),
        (
            settings.kafka,
            "kafka",
            protocol.endswith("SSL"),
            f"kafka.security_protocol is {protocol}",
            "kafka.security_protocol to SSL or SASL_SSL",
        ),
        (
            settings.registry,
            "registry",
            settings.registry.url.startswith("https:"),
            "registry.url is not https",
            "registry.url to an https URL",
        ),
    )
    for table, name, is_encrypted, problem, fix in tables:
        for key in _TLS_FILES:
            if getattr(table, key) is not None and not is_encrypted:
                yield f"{name}.{key}", f"has no effect, and the connection is not encrypted: {problem}", f"Set {fix}."


def _without_login(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Logins that no server would get."""
    kafka, registry = settings.kafka, settings.registry
    if kafka.sasl_username and not kafka.security_protocol.startswith("SASL"):
        yield (
            "kafka.sasl_username",
            f"has no effect: kafka.security_protocol is {kafka.security_protocol}",
            "Set kafka.security_protocol to SASL_SSL or SASL_PLAINTEXT.",
        )
    if registry.username and "@" in urlsplit(registry.url).netloc:
        yield (
            "registry.username",
            "is set, and registry.url has a user as well",
            "Remove the user from registry.url.",
        )


def _inside_of_cdc_raw(settings: Settings) -> Iterator[tuple[str, str, str]]:
    """Folders for segments that are taken out of cdc_raw: Cassandra counts all that is below it."""
    cdc_raw, own = settings.node.cdc_raw_directory, settings.publisher
    folders = {
        "publisher.processed_segments": Path(own.processed_segments),
        "publisher.spool_directory": own.spool_directory,
        "publisher.state_directory": own.state_directory,
    }
    for name, folder in folders.items():
        if folder is not None and folder.is_absolute() and folder.is_relative_to(cdc_raw):
            yield (
                name,
                f"is in node.cdc_raw_directory, {cdc_raw}, whose size Cassandra limits",
                "Set it to a folder outside of it.",
            )


def _compaction(settings: Settings, origins: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """A bound for how long deleted rows stay that would not be kept. The default gives way to the other setting."""
    name, kafka = "kafka.max_compaction_lag_hours", settings.kafka
    if origins[name] != "default" and 0 < kafka.max_compaction_lag_hours < kafka.min_compaction_lag_hours:
        least = f"kafka.min_compaction_lag_hours, {kafka.min_compaction_lag_hours}"
        yield name, f"is less than {least}, which brokers keep first", "Set min_compaction_lag_hours to that or less."
