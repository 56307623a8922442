"""/producers and /consumers."""

from __future__ import annotations

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import Consumer, Producer  # noqa: TC001 - as above
from schematizer.access import Role
from schematizer.api.parts import Parts, PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router
from schematizer.bodies import ConsumerBody, ProducerBody  # noqa: TC001 - FastAPI reads annotations
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration
from schematizer.model.client_tables import ConsumerRow, ProducerRow
from schematizer.topic_names import parse_topic

router = any_role_router()


@router.get("/producers")
def producers(parts: PartsDep, request: Request, topic: str | None = None, team: str | None = None) -> list[Producer]:
    """Registered producers: of a topic, or of all namespaces."""
    _require_reader(parts, request, topic)
    return parts.catalogue.clients.producers(topic, team)


@router.get("/consumers")
def consumers(parts: PartsDep, request: Request, topic: str | None = None, team: str | None = None) -> list[Consumer]:
    """Registered consumers: of a topic, or of all namespaces."""
    _require_reader(parts, request, topic)
    return parts.catalogue.clients.consumers(topic, team)


@router.post("/producers")
def register_producer(parts: PartsDep, body: ProducerBody, request: Request) -> Producer:
    """Registers a producer. Idempotent; each call counts as being seen."""
    by = parts.writers.of_topic(request, body.topic)
    return parts.catalogue.clients.register_producer(ProducerRegistration(**body.model_dump()), by=by)


@router.post("/consumers")
def register_consumer(parts: PartsDep, body: ConsumerBody, request: Request) -> Consumer:
    """Registers a consumer. Idempotent; each call counts as being seen."""
    by = parts.writers.reader_of_topic(request, body.topic)
    return parts.catalogue.clients.register_consumer(ConsumerRegistration(**body.model_dump()), by=by)


@router.delete("/producers")
def remove_producer(parts: PartsDep, request: Request, topic: str, service: str) -> int:
    """Forgets a service as producer of a topic. Answers how many registrations it had."""
    by = parts.writers.of_topic(request, topic)
    return parts.catalogue.clients.remove(ProducerRow, topic, service, None, by=by)


@router.delete("/consumers")
def remove_consumer(
    parts: PartsDep, request: Request, topic: str, service: str, consumer_group: str | None = None
) -> int:
    """Forgets a service as consumer of a topic, with one group or with all. Answers how many registrations it had."""
    by = parts.writers.of_topic(request, topic)
    return parts.catalogue.clients.remove(ConsumerRow, topic, service, consumer_group, by=by)


def _require_reader(parts: Parts, request: Request, topic: str | None) -> None:
    namespace = None if topic is None else parse_topic(topic, parts.catalogue.rules.pii_prefix).namespace
    parts.access.require(request, Role.READER, namespace)
