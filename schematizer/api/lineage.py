"""/namespaces/{namespace}/sources/{source}/lineage."""

from __future__ import annotations

from cdc_common.clients.registry.views import Lineage  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import guarded_router
from schematizer.measures.sampler import lags_of

router = guarded_router()


@router.get("/namespaces/{namespace}/sources/{source}/lineage")
def lineage(parts: PartsDep, namespace: str, source: str) -> Lineage:
    """The stages that its rows pass, in order: table, raw topic, change topics, consumers with their lags."""
    return parts.catalogue.lineages.of_source(namespace, source, lags_of(parts.measures))
