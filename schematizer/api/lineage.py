"""/namespaces/{namespace}/sources/{source}/lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import Lineage  # noqa: TC001 - as above
from schematizer.api.access import guarded_router
from schematizer.measures.sampler import lags_of

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.measures.sampler import Measures
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access, measures: Measures) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)

    @routes.get("/namespaces/{namespace}/sources/{source}/lineage")
    def lineage(namespace: str, source: str) -> Lineage:
        """The stages that its rows pass, in order: table, raw topic, change topics, consumers with their lags."""
        return catalogue.lineages.of_source(namespace, source, lags_of(measures))

    return routes
