"""/producers and /consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from schematizer.api.access import Writers, any_role_router, guarded_router
from schematizer.bodies import ConsumerBody, ProducerBody  # noqa: TC001 - as above
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.views import Consumer, Producer  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.catalogue.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    both = APIRouter()
    both.include_router(_lists(catalogue, access))
    both.include_router(_registrations(catalogue, access))
    return both


def _registrations(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, writers = any_role_router(access), Writers(catalogue, access)

    @routes.post("/producers")
    def register_producer(body: ProducerBody, request: Request) -> Producer:
        """Registers a producer. Idempotent; each call counts as being seen."""
        by = writers.of_topic(request, body.topic)
        return catalogue.clients.register_producer(ProducerRegistration(**body.model_dump()), by=by)

    @routes.post("/consumers")
    def register_consumer(body: ConsumerBody, request: Request) -> Consumer:
        """Registers a consumer. Idempotent; each call counts as being seen."""
        by = writers.reader_of_topic(request, body.topic)
        return catalogue.clients.register_consumer(ConsumerRegistration(**body.model_dump()), by=by)

    return routes


def _lists(catalogue: Catalogue, access: Access) -> APIRouter:
    routes = guarded_router(access, catalogue.rules.pii_prefix)

    @routes.get("/producers")
    def producers(topic: str | None = None, team: str | None = None) -> list[Producer]:
        """Registered producers."""
        return catalogue.clients.producers(topic, team)

    @routes.get("/consumers")
    def consumers(topic: str | None = None, team: str | None = None) -> list[Consumer]:
        """Registered consumers."""
        return catalogue.clients.consumers(topic, team)

    return routes
