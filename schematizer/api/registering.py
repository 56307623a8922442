"""Registration: /namespaces/{namespace}/schemas, /formats, and the documentation of sources."""

from __future__ import annotations

from fastapi import Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import Compatibility, Registration, SourceDocumentation
from schematizer.api.parts import PartsDep  # noqa: TC001 - FastAPI reads annotations
from schematizer.api.routers import guarded_router
from schematizer.bodies import DescriptionBody, DocumentationBody  # noqa: TC001 - as above
from schematizer.converters.converted import FieldDocumentation
from schematizer.registration.register import Description

router = guarded_router()


@router.get("/formats")
def formats(parts: PartsDep) -> list[str]:
    """Formats of descriptions that can be registered."""
    return parts.catalogue.registering.formats()


@router.post("/namespaces/{namespace}/schemas")
def register(parts: PartsDep, namespace: str, body: DescriptionBody, request: Request) -> Registration:
    """Registers a schema, and names its topic and the reason. Idempotent."""
    by = parts.writers.of_namespace(request, namespace)
    return parts.catalogue.registering.register(_description(namespace, body), by=by)


@router.post("/namespaces/{namespace}/compatibility")
def check(parts: PartsDep, namespace: str, body: DescriptionBody) -> Compatibility:
    """The decision that a registration would take; nothing is registered."""
    verdict = parts.catalogue.registering.check(_description(namespace, body))
    return Compatibility(is_compatible=not verdict.is_new_topic, rule=verdict.rule, reason=verdict.reason)


@router.get("/namespaces/{namespace}/documentation")
def documentation_of(parts: PartsDep, namespace: str) -> dict[str, SourceDocumentation]:
    """The documentation of all sources of a namespace, by source."""
    return parts.catalogue.documentation.of_namespace(namespace)


@router.get("/namespaces/{namespace}/sources/{source}/documentation")
def documentation(parts: PartsDep, namespace: str, source: str) -> SourceDocumentation:
    """A source's documentation."""
    return parts.catalogue.documentation.get(namespace, source)


@router.put("/namespaces/{namespace}/sources/{source}/documentation")
def put_documentation(
    parts: PartsDep, namespace: str, source: str, body: DocumentationBody, request: Request
) -> list[str]:
    """Sets all of it, and answers with the paths that the newest schema does not have."""
    by = parts.writers.of_namespace(request, namespace)
    said = SourceDocumentation.model_validate(body.model_dump())
    return parts.catalogue.documentation.put(namespace, source, said, by=by)


def _description(namespace: str, body: DescriptionBody) -> Description:
    fields = {path: FieldDocumentation(field.doc, field.owner, field.pii) for path, field in body.fields.items()}
    return Description(namespace, body.format, body.text, body.source, body.key, body.owner, body.doc, fields)
