"""Registration: /namespaces/{namespace}/schemas, /formats, and the documentation of sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request  # noqa: TC002 - FastAPI reads annotations

from cdc_common.clients.registry.views import Compatibility, Registration, SourceDocumentation
from schematizer.api.access import Writers, guarded_router
from schematizer.bodies import DescriptionBody, DocumentationBody  # noqa: TC001 - as above
from schematizer.converters.converted import FieldDocumentation
from schematizer.registration.register import Description

if TYPE_CHECKING:
    from schematizer.access import Access
    from schematizer.service import Catalogue


def router(catalogue: Catalogue, access: Access) -> APIRouter:
    routes, writers = guarded_router(access, catalogue.rules.pii_prefix), Writers(catalogue, access)

    @routes.get("/formats")
    def formats() -> list[str]:
        """Formats of descriptions that can be registered."""
        return catalogue.registering.formats()

    @routes.post("/namespaces/{namespace}/schemas")
    def register(namespace: str, body: DescriptionBody, request: Request) -> Registration:
        """Registers a schema, and names its topic and the reason. Idempotent."""
        by = writers.of_namespace(request, namespace)
        return catalogue.registering.register(_description(namespace, body), by=by)

    @routes.post("/namespaces/{namespace}/compatibility")
    def check(namespace: str, body: DescriptionBody) -> Compatibility:
        """The decision that a registration would take; nothing is registered."""
        verdict = catalogue.registering.check(_description(namespace, body))
        return Compatibility(is_compatible=not verdict.is_new_topic, rule=verdict.rule, reason=verdict.reason)

    @routes.get("/namespaces/{namespace}/sources/{source}/documentation")
    def documentation(namespace: str, source: str) -> SourceDocumentation:
        """A source's documentation."""
        return catalogue.documentation.get(namespace, source)

    @routes.put("/namespaces/{namespace}/sources/{source}/documentation")
    def put_documentation(namespace: str, source: str, body: DocumentationBody, request: Request) -> list[str]:
        """Sets all of it, and answers with the paths that the newest schema does not have."""
        by = writers.of_namespace(request, namespace)
        said = SourceDocumentation.model_validate(body.model_dump())
        return catalogue.documentation.put(namespace, source, said, by=by)

    return routes


def _description(namespace: str, body: DescriptionBody) -> Description:
    fields = {path: FieldDocumentation(field.doc, field.owner, field.pii) for path, field in body.fields.items()}
    return Description(namespace, body.format, body.text, body.source, body.key, body.owner, body.doc, fields)
