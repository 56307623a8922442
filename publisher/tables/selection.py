"""Select the tables with `cdc = true` that are published: `publisher.include_tables` and `exclude_tables`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from publisher.settings import PublisherSettings

_ALL = "*"


class Selection(NamedTuple):
    """A choice of tables, by patterns `KEYSPACE.TABLE` or `KEYSPACE.*`, spelled as in Cassandra."""

    # The tables that are chosen; empty for all.
    include: tuple[str, ...] = ()
    # The tables that are not chosen.
    exclude: tuple[str, ...] = ()

    def includes(self, keyspace: str, table: str) -> bool:
        names = {f"{keyspace}.{table}", f"{keyspace}.{_ALL}"}
        return (not self.include or not names.isdisjoint(self.include)) and names.isdisjoint(self.exclude)

    def unmatched_patterns(self, tables: Iterable[tuple[str, str]]) -> Iterator[str]:
        """The patterns that match none of the tables."""
        names = {name for keyspace, table in tables for name in (f"{keyspace}.{table}", f"{keyspace}.{_ALL}")}
        return (pattern for pattern in (*self.include, *self.exclude) if pattern not in names)


ALL_TABLES = Selection()


def selection_from(settings: PublisherSettings) -> Selection:
    return Selection(tuple(settings.include_tables), tuple(settings.exclude_tables))
