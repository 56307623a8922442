"""The content type of the registry's responses."""

from __future__ import annotations

from fastapi.responses import JSONResponse, Response

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class RegistryResponse(JSONResponse):
    media_type = CONTENT_TYPE


class SchemaResponse(Response):
    """A schema as it is stored, which is JSON already."""

    media_type = CONTENT_TYPE
