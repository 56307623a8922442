"""/producers and /consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from cdc_common.clients.registry.views import Consumer, Producer  # noqa: TC001 - as above
from schematizer.access import Role
from schematizer.api.access import Writers, any_role_router
from schematizer.bodies import ConsumerBody, ProducerBody  # noqa: TC001 - FastAPI reads annotations
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


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
    routes = any_role_router(access)

    def reads(request: Request, topic: str | None) -> None:
        namespace = None if topic is None else parse_topic(topic, catalogue.rules.pii_prefix).namespace
        access.require(request, Role.READER, namespace)

    @routes.get("/producers")
    def producers(request: Request, topic: str | None = None, team: str | None = None) -> list[Producer]:
        """Registered producers: of a topic, or of all namespaces."""
        reads(request, topic)
        return catalogue.clients.producers(topic, team)

    @routes.get("/consumers")
    def consumers(request: Request, topic: str | None = None, team: str | None = None) -> list[Consumer]:
        """Registered consumers: of a topic, or of all namespaces."""
        reads(request, topic)
        return catalogue.clients.consumers(topic, team)

    return routes
