"""/data-targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from cdc_common.clients.registry.views import (
    ConsumerGroup,
    DataSource,
    DataTarget,
    FollowedTopics,
)
from schematizer.api.access import Writers, any_role_router, guarded_router
from schematizer.bodies import ConsumerGroupBody, DataTargetBody  # noqa: TC001 - FastAPI reads annotations
from schematizer.catalogue.target_readers import DataTargetReaders
from schematizer.numbers import Cursor  # noqa: TC001 - FastAPI reads annotations

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    both = APIRouter()
    both.include_router(_all(catalogue, access))
    both.include_router(_one(catalogue, DataTargetReaders(catalogue.data_targets, access), access))
    return both


def _all(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, writers = guarded_router(access, catalogue.rules.pii_prefix), Writers(catalogue, access)

    @routes.get("/data-targets")
    def data_targets() -> list[DataTarget]:
        """All data targets."""
        return catalogue.data_targets.every()

    @routes.put("/data-targets/{name}")
    def put_data_target(name: str, body: DataTargetBody, request: Request) -> DataTarget:
        """Adds or changes a data target."""
        by = writers.of_namespace(request, None)
        return catalogue.data_targets.put(name, body.kind, body.destination, body.owner, body.doc, by=by)

    @routes.put("/data-targets/{name}/consumer-groups/{group}")
    def put_consumer_group(name: str, group: str, body: ConsumerGroupBody, request: Request) -> ConsumerGroup:
        """Adds or changes a consumer group."""
        by = writers.of_namespace(request, None)
        reads = [
            DataSource(namespace=data_source.namespace, source=data_source.source) for data_source in body.data_sources
        ]
        return catalogue.data_targets.put_group(name, group, reads, by=by)

    return routes


def _one(catalogue: Catalogue, readers: DataTargetReaders, access: Access) -> APIRouter:
    routes = any_role_router(access)

    @routes.get("/data-targets/{name}")
    def data_target(name: str, request: Request) -> DataTarget:
        """One data target."""
        readers.require(request, name)
        return catalogue.data_targets.get(name)

    @routes.get("/data-targets/{name}/consumer-groups")
    def consumer_groups(name: str, request: Request) -> list[ConsumerGroup]:
        """Its consumer groups, and the namespaces and sources that each reads."""
        readers.require(request, name)
        groups = catalogue.data_targets.groups(name)
        readers.require_all(request, (data_source.namespace for group in groups for data_source in group.data_sources))
        return groups

    @routes.get("/data-targets/{name}/topics")
    def followed_topics(name: str, request: Request, cursor: Cursor = 0) -> FollowedTopics:
        """The topics that it reads now, and whether anything changed since the cursor of the last answer."""
        readers.require(request, name, may_be_empty=True)
        followed = catalogue.data_targets.followed_topics(name, cursor)
        readers.require_all(request, (topic.namespace for topic in followed.topics))
        return followed

    return routes
