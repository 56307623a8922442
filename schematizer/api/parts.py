"""The parts of the registry that REST requests use. A handler names them as its first parameter, `parts: PartsDep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations

from schematizer.api.access import Writers
from schematizer.catalogue.schema_readers import SchemaReaders
from schematizer.catalogue.target_readers import DataTargetReaders
from schematizer.security.service import Security

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from schematizer.access import Access
    from schematizer.measures.sampler import Measures
    from schematizer.service import Catalogue


class Parts:
    """The parts of one registry. `security` is None if no client logs in."""

    def __init__(
        self,
        catalogue: Catalogue,
        access: Access,
        measures: Measures,
        security: Security | None,
        count_database_error: Callable[[], None],
    ) -> None:
        self.catalogue = catalogue
        self.access = access
        self.measures = measures
        self.security = security
        self.count_database_error = count_database_error
        self.writers = Writers(catalogue, access)
        self.schema_readers = SchemaReaders(catalogue.schemas, access, catalogue.rules.pii_prefix)
        self.target_readers = DataTargetReaders(catalogue.data_targets, access)


def keep_parts(app: FastAPI, parts: Parts) -> None:
    """Keep the parts where the application's requests find them."""
    app.state.parts = parts


def parts_of_app(app: FastAPI) -> Parts:
    """Return the parts that the application keeps."""
    parts: Parts = app.state.parts
    return parts


async def parts_of(request: Request) -> Parts:
    """Return the parts of the application that the request has reached."""
    return parts_of_app(request.app)


PartsDep = Annotated[Parts, Depends(parts_of)]


async def security_of(parts: PartsDep) -> Security:
    """Return the part that logs in. Only an application that has it has routes that ask for it."""
    assert parts.security is not None
    return parts.security


SecurityDep = Annotated[Security, Depends(security_of)]
