"""The marks of fields in the catalogue of cassandra-schematizer: their docs, and which are personal data."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdc_common.clients.registry.errors import RegistryRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.clients.registry.schematizer import SchematizerClient


class Mark(NamedTuple):
    """The marks of a field."""

    # Its documentation; empty for none.
    doc: str
    # Whether its values are personal data. So are those of a field that has a personal field in it.
    is_personal: bool


class Catalogue(Protocol):
    """The catalogue of a registry."""

    def marks(self, schema_id: int, /) -> Mapping[str, Mark]:
        """The marks of a row's fields, by name. CdcError of the registry."""
        ...


class NoCatalogue:
    """Catalogue of a registry that has none."""

    def marks(self, schema_id: int) -> Mapping[str, Mark]:  # noqa: ARG002 - it knows no schema
        return {}


class SchematizerCatalogue:
    """Catalogue of cassandra-schematizer. Other registries do not know the request, and so have no marks."""

    def __init__(self, client: SchematizerClient) -> None:
        self._client = client

    def marks(self, schema_id: int) -> Mapping[str, Mark]:
        try:
            elements = self._client.elements(schema_id)
        except RegistryRequestError as error:
            if error.lacks_request or error.is_not_found:
                return {}
            raise
        found: dict[str, Mark] = {}
        for element in elements:
            name, _, inner = element.path.partition(".")
            known = found.get(name, Mark("", is_personal=False))
            found[name] = Mark(known.doc if inner else element.doc or "", known.is_personal or element.is_pii)
        return found
