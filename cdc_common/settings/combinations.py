"""Refuses settings that are valid by themselves, where one would silently switch off another."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol, runtime_checkable
from urllib.parse import urlsplit

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.base import Conflict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from cdc_common.settings.base import Table
    from cdc_common.settings.shared import Settings


@runtime_checkable
class CheckedTable(Protocol):
    """A table of cdc.toml that refuses some of its settings beside each other or beside the shared tables."""

    def conflicts(self, shared: Settings) -> Iterator[Conflict]: ...


_TLS_FILES = ("ssl_ca_file", "ssl_identity_file")


def check_combinations(settings: Settings, tables: Iterable[Table], origins: Mapping[str, str]) -> None:
    """Check the shared tables, then each of `tables`. `origins`: of each `table.key`. CdcError CONFIG_INVALID for the
    first setting that has no effect.
    """
    own = (table.conflicts(settings) for table in tables if isinstance(table, CheckedTable))
    checks = (_without_tls(settings), _without_login(settings), *own, _compaction(settings, origins))
    for name, why, fix in chain.from_iterable(checks):
        raise CdcError(Code.CONFIG_INVALID, f"{name} ({origins[name]}) {why}.", fix)


def _without_tls(settings: Settings) -> Iterator[Conflict]:
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
                yield Conflict(
                    f"{name}.{key}", f"has no effect, and the connection is not encrypted: {problem}", f"Set {fix}."
                )


def _without_login(settings: Settings) -> Iterator[Conflict]:
    """Logins that no server would get."""
    kafka, registry = settings.kafka, settings.registry
    if kafka.sasl_username and not kafka.security_protocol.startswith("SASL"):
        yield Conflict(
            "kafka.sasl_username",
            f"has no effect: kafka.security_protocol is {kafka.security_protocol}",
            "Set kafka.security_protocol to SASL_SSL or SASL_PLAINTEXT.",
        )
    if registry.username and "@" in urlsplit(registry.url).netloc:
        yield Conflict(
            "registry.username",
            "is set, and registry.url has a user as well",
            "Remove the user from registry.url.",
        )


def _compaction(settings: Settings, origins: Mapping[str, str]) -> Iterator[Conflict]:
    """A bound for how long deleted rows stay that would not be kept. The default gives way to the other setting."""
    name, kafka = "kafka.max_compaction_lag_hours", settings.kafka
    if origins[name] != "default" and 0 < kafka.max_compaction_lag_hours < kafka.min_compaction_lag_hours:
        least = f"kafka.min_compaction_lag_hours, {kafka.min_compaction_lag_hours}"
        yield Conflict(
            name, f"is less than {least}, which brokers keep first", "Set min_compaction_lag_hours to that or less."
        )
