"""Migration plans for schemas of the catalogue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from cdc_common.clients.registry.kinds import Part
from schematizer.catalogue import lookups
from schematizer.catalogue.schemas import elements_of
from schematizer.errors import invalid, not_found
from schematizer.model.source_tables import TopicRow, TopicSchemaRow
from schematizer.plans.columns import PlanColumn, PlanError, columns_of, require_same_key
from schematizer.plans.planners import all_planners

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.orm import Session

    from schematizer.model.database import Database


class Plans:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._planners = all_planners()

    def planners(self) -> list[str]:
        return sorted(self._planners)

    def make(
        self,
        planner: str,
        table: str,
        schema_id: int,
        from_schema_id: int | None = None,
        topics: Collection[str] | None = None,
    ) -> list[str]:
        """The statements that make the table of a schema, or lead it there from another schema. Comments are the docs
        that the catalogue has now, of the newest topic with the schema; of one of `topics` if they are given. INVALID
        where there is no plan.
        """
        found = self._planners.get(planner)
        if found is None:
            raise not_found("planner", planner, f"Choose one of {', '.join(self.planners())}.")
        columns, key = self._database.read_session(lambda session: _columns(session, schema_id, topics))
        try:
            if from_schema_id is None:
                return found.create_table(table, columns, key)
            before, old_key = self._database.read_session(lambda session: _columns(session, from_schema_id, topics))
            require_same_key(old_key, key)
            return found.steps(table, before, columns)
        except PlanError as error:
            raise invalid(
                f"There is no {planner} plan for schema {schema_id}: {error}.", "Choose other schemas."
            ) from error


def _columns(session: Session, schema_id: int, topics: Collection[str] | None) -> tuple[list[PlanColumn], list[str]]:
    """Return the columns of a schema, and the paths of its primary key."""
    text = lookups.schema_text(session, schema_id)
    query = (
        select(TopicSchemaRow)
        .where(TopicSchemaRow.schema_id == schema_id, TopicSchemaRow.part == Part.VALUE)
        .order_by(TopicSchemaRow.id.desc())
    )
    if topics is not None:
        query = query.join(TopicRow).where(TopicRow.name.in_(topics))
    used = session.scalars(query).first()
    described = elements_of(session, schema_id, used)
    try:
        columns = columns_of(text, {element.path: element.doc for element in described if element.doc})
    except PlanError as error:
        raise invalid(f"Schema {schema_id} has no table: {error}.", "Choose a schema of a record.") from error
    return columns, [element.path for element in described if element.is_key]
