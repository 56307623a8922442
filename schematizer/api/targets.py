"""/data-targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.api.access import Writers, guarded_router
from schematizer.bodies import ConsumerGroupBody, DataTargetBody  # noqa: TC001 - as above
from schematizer.views import ConsumerGroup, DataTarget, FollowedTopics  # noqa: TC001 - as above

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.catalogue.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, writers = guarded_router(access, catalogue.rules.pii_prefix), Writers(catalogue, access)

    @routes.get("/data-targets")
    def data_targets() -> list[DataTarget]:
        """All data targets."""
        return catalogue.data_targets.every()

    @routes.get("/data-targets/{name}")
    def data_target(name: str) -> DataTarget:
        """One data target."""
        return catalogue.data_targets.get(name)

    @routes.put("/data-targets/{name}")
    def put_data_target(name: str, body: DataTargetBody, request: Request) -> DataTarget:
        """Adds or changes a data target."""
        by = writers.of_namespace(request, None)
        return catalogue.data_targets.put(name, body.kind, body.destination, body.owner, body.doc, by=by)

    @routes.get("/data-targets/{name}/consumer-groups")
    def consumer_groups(name: str) -> list[ConsumerGroup]:
        """Its consumer groups, and the namespaces and sources that each reads."""
        return catalogue.data_targets.groups(name)

    @routes.put("/data-targets/{name}/consumer-groups/{group}")
    def put_consumer_group(name: str, group: str, body: ConsumerGroupBody, request: Request) -> ConsumerGroup:
        """Adds or changes a consumer group."""
        by = writers.of_namespace(request, None)
        return catalogue.data_targets.put_group(name, group, body.data_sources, by=by)

    @routes.get("/data-targets/{name}/topics")
    def followed_topics(name: str, cursor: int = 0) -> FollowedTopics:
        """The topics that it reads now, and whether anything changed since the cursor of the last answer."""
        return catalogue.data_targets.follow(name, cursor)

    return routes
