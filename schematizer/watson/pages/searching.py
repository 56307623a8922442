"""Search: a page, and the results alone while someone types."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse  # noqa: TC002 - as above

from schematizer.watson.site import Crumb, SiteDep

router = APIRouter()


_ON_PAGE = 50
_WHILE_TYPING = 10
_MAX_QUERY = 200


@router.get("/search")
def search_page(site: SiteDep, request: Request, q: str = "") -> HTMLResponse:
    site.readable(request)
    text = q.strip()[:_MAX_QUERY]
    is_typing = request.headers.get("hx-target") == "suggestions"
    found = site.catalogue.search.find(text, _WHILE_TYPING if is_typing else _ON_PAGE, site.grants(request))
    near = None if found or is_typing else site.catalogue.search.find_near(text, _ON_PAGE, site.grants(request))
    template = "_found.html" if request.headers.get("hx-request") == "true" else "search.html"
    return site.page(
        request,
        template,
        [Crumb("Search", site.links(request).to("search"))],
        search_text=text,
        found=near.found if near else found,
        near=near.words if near else None,
        is_typing=is_typing,
    )
