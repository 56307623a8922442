"""/unused."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from cdc_common.clients.registry.views import Unused  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router
from schematizer.catalogue.usage import UNUSED_DAYS

Days = Annotated[int, Query(ge=1, le=100_000)]

router = any_role_router()


@router.get("/unused")
def unused(parts: PartsDep, request: Request, days: Days = UNUSED_DAYS) -> list[Unused]:
    """Topics, and schemas of used topics, that no client has used in so many days, of those that the login may
    read.
    """
    return parts.catalogue.usage.unused(days, parts.access.identify(request).grants)
