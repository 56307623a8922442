"""/plans."""

from __future__ import annotations

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router
from schematizer.numbers import GivenId  # noqa: TC001 - FastAPI reads annotations

router = any_role_router()


@router.get("/plans")
def planners(parts: PartsDep) -> list[str]:
    """The kinds of warehouses that have plans."""
    return parts.catalogue.plans.planners()


@router.get("/plans/{planner}")
def plan(  # noqa: PLR0913, PLR0917 - the query's parameters
    parts: PartsDep,
    request: Request,
    planner: str,
    table: str,
    schema_id: GivenId,
    from_schema_id: GivenId | None = None,
) -> list[str]:
    """Statements, in order: CREATE TABLE for the schema, or the steps from `from_schema_id` to it. The login must
    be allowed to read both; comments are the docs of a topic that it may read.
    """
    asked = [schema_id] if from_schema_id is None else [schema_id, from_schema_id]
    topics = {topic.topic for one in asked for topic in parts.schema_readers.readable(request, one).topics}
    return parts.catalogue.plans.make(planner, table, schema_id, from_schema_id, topics)
