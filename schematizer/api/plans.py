"""/plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter  # noqa: TC002 - FastAPI reads annotations

from schematizer.api.access import guarded_router

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.catalogue.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)

    @routes.get("/plans")
    def planners() -> list[str]:
        """The kinds of warehouses that have plans."""
        return catalogue.plans.planners()

    @routes.get("/plans/{planner}")
    def plan(planner: str, table: str, schema_id: int, from_schema_id: int | None = None) -> list[str]:
        """Statements, in order: CREATE TABLE for the schema, or the steps from `from_schema_id` to it."""
        return catalogue.plans.make(planner, table, schema_id, from_schema_id)

    return routes
