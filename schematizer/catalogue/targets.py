"""Data targets, their consumer groups, and the topics that these read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from cdc_common.clients.registry.views import (
    ConsumerGroup,
    DataSource,
    DataTarget,
    FollowedTopics,
)
from schematizer.catalogue import lookups
from schematizer.catalogue.topics import topics_of_target
from schematizer.model.client_tables import ConsumerGroupRow, DataSourceRow, DataTargetRow
from schematizer.model.record_tables import ChangeRow
from schematizer.model.source_tables import NamespaceRow

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from schematizer.catalogue.topics import Topics
    from schematizer.model.database import Database


class DataTargets:
    def __init__(self, database: Database, topics: Topics) -> None:
        self._database = database
        self._topics = topics

    def every(self) -> list[DataTarget]:
        query = select(DataTargetRow).order_by(DataTargetRow.name)
        return self._database.read_session(lambda session: [_target(row) for row in session.scalars(query)])

    def get(self, name: str) -> DataTarget:
        return self._database.read_session(lambda session: _target(lookups.data_target_row(session, name)))

    def namespaces(self, name: str | None = None) -> dict[str, set[str]]:
        """The namespaces that each data target reads, all of it or some sources; of one, if it is named and exists."""
        query = (
            select(DataTargetRow.name, NamespaceRow.name)
            .outerjoin(DataTargetRow.groups)
            .outerjoin(ConsumerGroupRow.data_sources)
            .outerjoin(DataSourceRow.namespace)
            .distinct()
        )
        if name is not None:
            query = query.where(DataTargetRow.name == name)

        def transaction(session: Session) -> dict[str, set[str]]:
            found: dict[str, set[str]] = {}
            for target, namespace in session.execute(query):
                found.setdefault(target, set()).update([namespace] if namespace else [])
            return found

        return self._database.read_session(transaction)

    def put(  # noqa: PLR0913 - what a data target is made of
        self, name: str, kind: str, destination: str, owner: str | None, doc: str | None, *, by: str
    ) -> DataTarget:
        """Makes it, or changes the one that exists."""

        def transaction(session: Session) -> DataTarget:
            row = session.scalar(select(DataTargetRow).where(DataTargetRow.name == name))
            action = "change data target"
            if row is None:
                row = DataTargetRow(name=lookups.checked_name("data target", name))
                action = "add data target"
            row.kind, row.destination, row.owner, row.doc = kind, destination, owner, doc
            lookups.added(session, row)
            lookups.record(session, by, lookups.Change(action, None, name))
            return _target(row)

        return self._database.write_session(transaction)

    def groups(self, name: str) -> list[ConsumerGroup]:
        def transaction(session: Session) -> list[ConsumerGroup]:
            return [group_view(row) for row in lookups.data_target_row(session, name).groups]

        return self._database.read_session(transaction)

    def put_group(self, name: str, group: str, data_sources: list[DataSource], *, by: str) -> ConsumerGroup:
        """Sets what a consumer group of this data target reads. CONFLICT if the group fills another data target."""

        def transaction(session: Session) -> ConsumerGroup:
            target = lookups.data_target_row(session, name)
            row = session.scalar(select(ConsumerGroupRow).where(ConsumerGroupRow.name == group))
            if row is None:
                row = ConsumerGroupRow(name=lookups.checked_name("consumer group", group), data_target=target)
                lookups.added(session, row)
            elif row.data_target_id != target.id:
                lookups.refuse_if_there(row, f"consumer group of {row.data_target.name}:", group)
            # One that stays is the same row: of two equal ones, the new would be inserted before the old is deleted.
            known = {_data_source_view(data_source): data_source for data_source in row.data_sources}
            row.data_sources = [known.get(view) or _data_source(session, view) for view in dict.fromkeys(data_sources)]
            session.flush()
            lookups.record(session, by, lookups.Change("set data sources", None, f"{name}/{group}"))
            return group_view(row)

        return self._database.write_session(transaction)

    def followed_topics(self, name: str, cursor: int = 0) -> FollowedTopics:
        """The topics that the data target reads now, and whether anything in the catalogue changed after `cursor`."""

        def transaction(session: Session) -> FollowedTopics:
            target = lookups.data_target_row(session, name)
            newest = session.execute(select(func.max(ChangeRow.id))).scalar() or 0
            topics = [self._topics.view(row) for row in topics_of_target(session, target.id)]
            return FollowedTopics(cursor=newest, changed=newest > cursor, topics=topics)

        return self._database.read_session(transaction)


def _target(row: DataTargetRow) -> DataTarget:
    return DataTarget(
        id=row.id,
        name=row.name,
        kind=row.kind,
        destination=row.destination,
        owner=row.owner,
        doc=row.doc,
        created_at=row.created_at,
        groups=[group.name for group in row.groups],
    )


def group_view(row: ConsumerGroupRow) -> ConsumerGroup:
    sources = [_data_source_view(data_source) for data_source in row.data_sources]
    return ConsumerGroup(name=row.name, data_target=row.data_target.name, data_sources=sources)


def _data_source_view(row: DataSourceRow) -> DataSource:
    return DataSource(namespace=row.namespace.name, source=row.source.name if row.source else None)


def _data_source(session: Session, wanted: DataSource) -> DataSourceRow:
    if wanted.source is None:
        return DataSourceRow(namespace=lookups.namespace_row(session, wanted.namespace), source=None)
    source = lookups.source_row(session, wanted.namespace, wanted.source)
    return DataSourceRow(namespace=source.namespace, source=source)
