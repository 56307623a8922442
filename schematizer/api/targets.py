"""/data-targets."""

from __future__ import annotations

from fastapi import APIRouter, Request

from cdc_common.clients.registry.views import (
    ConsumerGroup,
    DataSource,
    DataTarget,
    FollowedTopics,
)
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import any_role_router, guarded_router
from schematizer.bodies import ConsumerGroupBody, DataTargetBody  # noqa: TC001 - FastAPI reads annotations
from schematizer.numbers import Cursor  # noqa: TC001 - FastAPI reads annotations

guarded = guarded_router()
narrowed = any_role_router()


@guarded.get("/data-targets")
def data_targets(parts: PartsDep) -> list[DataTarget]:
    """All data targets."""
    return parts.catalogue.data_targets.every()


@guarded.put("/data-targets/{name}")
def put_data_target(parts: PartsDep, name: str, body: DataTargetBody, request: Request) -> DataTarget:
    """Adds or changes a data target."""
    by = parts.writers.of_namespace(request, None)
    return parts.catalogue.data_targets.put(name, body.kind, body.destination, body.owner, body.doc, by=by)


@guarded.put("/data-targets/{name}/consumer-groups/{group}")
def put_consumer_group(
    parts: PartsDep, name: str, group: str, body: ConsumerGroupBody, request: Request
) -> ConsumerGroup:
    """Adds or changes a consumer group."""
    by = parts.writers.of_namespace(request, None)
    reads = [
        DataSource(namespace=data_source.namespace, source=data_source.source) for data_source in body.data_sources
    ]
    return parts.catalogue.data_targets.put_group(name, group, reads, by=by)


@narrowed.get("/data-targets/{name}")
def data_target(parts: PartsDep, name: str, request: Request) -> DataTarget:
    """One data target."""
    parts.target_readers.require(request, name)
    return parts.catalogue.data_targets.get(name)


@narrowed.get("/data-targets/{name}/consumer-groups")
def consumer_groups(parts: PartsDep, name: str, request: Request) -> list[ConsumerGroup]:
    """Its consumer groups, and the namespaces and sources that each reads."""
    parts.target_readers.require(request, name)
    groups = parts.catalogue.data_targets.groups(name)
    parts.target_readers.require_all(
        request, (data_source.namespace for group in groups for data_source in group.data_sources)
    )
    return groups


@narrowed.get("/data-targets/{name}/topics")
def followed_topics(parts: PartsDep, name: str, request: Request, cursor: Cursor = 0) -> FollowedTopics:
    """The topics that it reads now, and whether anything changed since the cursor of the last answer."""
    parts.target_readers.require(request, name, may_be_empty=True)
    followed = parts.catalogue.data_targets.followed_topics(name, cursor)
    parts.target_readers.require_all(request, (topic.namespace for topic in followed.topics))
    return followed


router = APIRouter()
router.include_router(guarded)
router.include_router(narrowed)
