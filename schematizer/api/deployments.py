"""/deployments: for programs that apply topic files."""

from __future__ import annotations

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import Lease, Managed, ManagedSince
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import guarded_router
from schematizer.bodies import LeaseBody, ManagedChangesBody  # noqa: TC001 - as above
from schematizer.catalogue.deployments import Thing
from schematizer.numbers import GivenId  # noqa: TC001 - as above

router = guarded_router()


@router.put("/deployments/{deployment}/lease")
def lease(parts: PartsDep, deployment: str, body: LeaseBody, request: Request) -> Lease:
    """Gives the right to apply the files of a deployment to one holder, or renews it."""
    by = parts.writers.of_namespace(request, None)
    return parts.catalogue.deployments.lease(deployment, body.holder, body.seconds, body.token, by=by)


@router.delete("/deployments/{deployment}/lease")
def release(parts: PartsDep, deployment: str, request: Request, token: GivenId = 0) -> None:
    """Ends the lease with this token."""
    parts.catalogue.deployments.release(deployment, token, by=parts.writers.of_namespace(request, None))


@router.get("/deployments/{deployment}/managed")
def managed(parts: PartsDep, deployment: str, kind: str | None = None) -> list[ManagedSince]:
    """The things that were made from the files of a deployment."""
    return parts.catalogue.deployments.managed(deployment, kind)


@router.get("/namespaces/{namespace}/documentation-files")
def documentation_files(parts: PartsDep, namespace: str) -> dict[str, ManagedSince]:
    """The notes about files, of all deployments, that document sources of a namespace, by source."""
    return parts.catalogue.deployments.documenting(namespace)


@router.post("/deployments/{deployment}/managed")
def change_managed(parts: PartsDep, deployment: str, body: ManagedChangesBody, request: Request) -> None:
    """Notes what was made, changed or removed. Needs the token of a valid lease."""
    by = parts.writers.of_namespace(request, None)
    put = [Managed.model_validate(thing.model_dump()) for thing in body.put]
    remove = [Thing(thing.kind, thing.name) for thing in body.remove]
    parts.catalogue.deployments.change(deployment, body.token, put, remove, by=by)
