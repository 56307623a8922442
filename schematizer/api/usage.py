"""/unused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query

from schematizer.api.access import guarded_router
from schematizer.catalogue.usage import UNUSED_DAYS
from schematizer.views import Unused  # noqa: TC001 - FastAPI reads annotations

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.catalogue.service import Catalogue

Days = Annotated[int, Query(ge=1, le=100_000)]


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)

    @routes.get("/unused")
    def unused(days: Days = UNUSED_DAYS) -> list[Unused]:
        """Topics, and schemas of used topics, that no client has used in so many days."""
        return catalogue.usage.unused(days)

    return routes
