"""/unused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request

from cdc_common.clients.registry.views import Unused  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.access import any_role_router
from schematizer.catalogue.usage import UNUSED_DAYS

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue

Days = Annotated[int, Query(ge=1, le=100_000)]


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = any_role_router(access)

    @routes.get("/unused")
    def unused(request: Request, days: Days = UNUSED_DAYS) -> list[Unused]:
        """Topics, and schemas of used topics, that no client has used in so many days, of those that the login may
        read.
        """
        return catalogue.usage.unused(days, access.identify(request).grants)

    return routes
