"""/plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.api.access import any_role_router
from schematizer.catalogue.schema_readers import SchemaReaders
from schematizer.numbers import GivenId  # noqa: TC001 - FastAPI reads annotations

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, readers = any_role_router(access), SchemaReaders(catalogue.schemas, access, catalogue.rules.pii_prefix)

    @routes.get("/plans")
    def planners() -> list[str]:
        """The kinds of warehouses that have plans."""
        return catalogue.plans.planners()

    @routes.get("/plans/{planner}")
    def plan(
        request: Request, planner: str, table: str, schema_id: GivenId, from_schema_id: GivenId | None = None
    ) -> list[str]:
        """Statements, in order: CREATE TABLE for the schema, or the steps from `from_schema_id` to it. The login must
        be allowed to read both; comments are the docs of a topic that it may read.
        """
        asked = [schema_id] if from_schema_id is None else [schema_id, from_schema_id]
        topics = {topic.topic for one in asked for topic in readers.readable(request, one).topics}
        return catalogue.plans.make(planner, table, schema_id, from_schema_id, topics)

    return routes
