"""The REST interface, as its own description has it: no script and nothing from elsewhere."""

from __future__ import annotations

from itertools import groupby

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - FastAPI reads annotations

from schematizer.errors import not_found
from schematizer.watson.openapi import Operation, operations
from schematizer.watson.site import Crumb, Site, SiteDep

router = APIRouter()

REST_ROOT = "/api/v1"


@router.get("/api")
def interface_page(site: SiteDep, request: Request) -> HTMLResponse:
    site.readable(request)
    groups = [(name, list(some)) for name, some in groupby(_operations(site), lambda operation: operation.group)]
    before = site.links(request).root.rpartition("/")[0]  # the interface is mounted beside Watson
    description = f"{before}{REST_ROOT}/openapi.json"
    return site.page(request, "interface.html", [_crumb(site, request)], groups=groups, description=description)


@router.get("/api/{operation}")
def operation_page(site: SiteDep, request: Request, operation: str) -> HTMLResponse:
    site.readable(request)
    shown = next((one for one in _operations(site) if one.id == operation), None)
    if shown is None:
        raise not_found("operation", operation, "See the list of operations.")
    crumb = Crumb(f"{shown.method} {shown.path}", site.links(request).to("api", operation))
    return site.page(request, "operation.html", [_crumb(site, request), crumb], shown=shown)


def _operations(site: Site) -> list[Operation]:
    return operations(site.describe_api(), REST_ROOT)


def _crumb(site: Site, request: Request) -> Crumb:
    return Crumb("API", site.links(request).to("api"))
