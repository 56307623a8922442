"""Which of the tables with `cdc = true` are published: `publisher.include_tables` and `exclude_tables`. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cdc_program.settings import PublisherSettings

_ALL = "*"


class Selection(NamedTuple):
    """Each is `KEYSPACE.TABLE` or `KEYSPACE.*`, as Cassandra spells the names. No `include` is all."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def takes(self, keyspace: str, table: str) -> bool:
        names = {f"{keyspace}.{table}", f"{keyspace}.{_ALL}"}
        return (not self.include or not names.isdisjoint(self.include)) and names.isdisjoint(self.exclude)

    def idle(self, tables: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Those of its patterns that fit none of the tables."""
        names = {name for keyspace, table in tables for name in (f"{keyspace}.{table}", f"{keyspace}.{_ALL}")}
        return (pattern for pattern in (*self.include, *self.exclude) if pattern not in names)


EVERYTHING = Selection()


def selection_of(settings: PublisherSettings) -> Selection:
    return Selection(tuple(settings.include_tables), tuple(settings.exclude_tables))
