"""Count the topics, schemas, producers and consumers of each namespace, for Prometheus."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import BigInteger, case, cast, func, not_, select, type_coerce

from cdc_common.clients.registry.kinds import Status
from schematizer.catalogue.clients import LATE
from schematizer.catalogue.usage import UNUSED_DAYS, is_unused_schema, is_unused_topic
from schematizer.model.base import microseconds, now
from schematizer.model.client_tables import ConsumerRow, ProducerRow
from schematizer.model.source_tables import NamespaceRow, SourceRow, TopicRow, TopicSchemaRow

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy import ColumnElement, Select, SQLColumnExpression
    from sqlalchemy.orm import Session

    from schematizer.model.base import Base
    from schematizer.model.database import Database

MAX_NAMESPACES = 50
"""The oldest namespaces are counted one by one, the others together: clients make namespaces."""
OTHERS = "(others)"
"""No namespace has this name: their names have no parentheses."""
_SECOND = 1_000_000  # in microseconds


class Counted(NamedTuple):
    """The number of things of one kind."""

    # The kind: topics, topic_schemas, unused_topics, unused_schemas, producers or consumers.
    what: str
    # The name of their namespace.
    namespace: str
    # Of topics and schemas a status, of producers and consumers `late` or `seen`, of what is unused empty.
    state: str
    # How many there are.
    number: int


class Census:
    def __init__(self, database: Database) -> None:
        self._database = database

    def take(self) -> list[Counted]:
        """All kinds and states of every namespace, zeros too."""
        return self._database.read_session(_take)


def how_many(condition: SQLColumnExpression[bool]) -> ColumnElement[int]:
    """Rows of a group."""
    return func.sum(case((condition, 1), else_=0))


def _take(session: Session) -> list[Counted]:
    names = {row.id: row.name for row in session.execute(select(NamespaceRow.id, NamespaceRow.name))}
    shown = {name: names[name] for name in sorted(names)[:MAX_NAMESPACES]}
    found: Counter[tuple[str, str, str]] = Counter()
    for table, conditions in _conditions(now()).items():
        rows = {namespace_id: counts for namespace_id, *counts in session.execute(_query(table, conditions))}
        for namespace_id in names:
            counts = rows.get(namespace_id, [0] * len(conditions))
            for (what, state), count in zip(conditions, counts, strict=True):
                found[what, shown.get(namespace_id, OTHERS), state] += int(count)
    return [Counted(*key, count) for key, count in found.items()]


def _conditions(moment: datetime) -> dict[type[Base], dict[tuple[str, str], ColumnElement[bool]]]:
    """Return, for each table, what is counted and in which state, with the condition that its rows meet."""
    before = moment - timedelta(days=UNUSED_DAYS)
    topics = {("topics", status.value): TopicRow.status == status for status in Status}
    schemas = {("topic_schemas", status.value): TopicSchemaRow.status == status for status in Status}
    return {
        TopicRow: {**topics, ("unused_topics", ""): is_unused_topic(before)},
        TopicSchemaRow: {**schemas, ("unused_schemas", ""): is_unused_schema(before)},
        ProducerRow: _of_clients("producers", ProducerRow, moment),
        ConsumerRow: _of_clients("consumers", ConsumerRow, moment),
    }


def _of_clients(
    what: str, table: type[ProducerRow | ConsumerRow], moment: datetime
) -> dict[tuple[str, str], ColumnElement[bool]]:
    seen_at = type_coerce(table.last_seen_at, BigInteger)
    is_late = seen_at + cast(table.expected_frequency_seconds, BigInteger) * (LATE * _SECOND) < microseconds(moment)
    return {(what, "late"): is_late, (what, "seen"): not_(is_late)}


def _query(table: type[Base], conditions: dict[tuple[str, str], ColumnElement[bool]]) -> Select[*tuple[Any, ...]]:
    """Rows of a namespace's id, and how many rows of the table meet each condition."""
    query = select(SourceRow.namespace_id, *map(how_many, conditions.values())).select_from(table)
    if table is not TopicRow:
        query = query.join(TopicRow)
    return query.join(SourceRow, SourceRow.id == TopicRow.source_id).group_by(SourceRow.namespace_id)
