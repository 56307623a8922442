"""The marks of fields in the catalogue of cassandra-schematizer: their docs, and which are personal data."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, Protocol

from cdc_common.clients.registry.errors import RegistryRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.clients.registry.schematizer import SchematizerClient
    from cdc_common.clients.registry.views import Element


_END = re.compile(r"[.\[{]")


class Mark(NamedTuple):
    """The marks of a field."""

    # Its documentation; empty for none.
    doc: str
    # Whether its values are personal data. So are those of a field that has a personal field in it.
    is_personal: bool


class Catalogue(Protocol):
    """The catalogue of a registry."""

    def marks(self, schema_id: int, topic: str, /) -> Mapping[str, Mark]:
        """The marks of a row's fields, by name, as the topic's source has them: topics with other sources may have the
        same schema. CdcError of the registry.
        """
        ...


class NoCatalogue:
    """Catalogue of a registry that has none."""

    def marks(self, schema_id: int, topic: str) -> Mapping[str, Mark]:  # noqa: ARG002 - it knows no schema
        return {}


class SchematizerCatalogue:
    """Catalogue of cassandra-schematizer. Other registries do not know the request, and so have no marks."""

    def __init__(self, client: SchematizerClient) -> None:
        self._client = client

    def marks(self, schema_id: int, topic: str) -> Mapping[str, Mark]:
        elements = self._elements(schema_id, topic) or self._elements(schema_id, None)
        found: dict[str, Mark] = {}
        for element in elements:
            name, inner = _outer(element.path)
            known = found.get(name, Mark("", is_personal=False))
            found[name] = Mark(known.doc if inner else element.doc or "", known.is_personal or element.is_pii)
        return found

    def _elements(self, schema_id: int, topic: str | None) -> list[Element]:
        """Empty if the registry knows no such schema or topic, or has no catalogue."""
        try:
            return self._client.elements(schema_id, topic)
        except RegistryRequestError as error:
            if error.lacks_request or error.is_not_found:
                return []
            raise


def _outer(path: str) -> tuple[str, str]:
    """The row's field that a path is in, and the rest: `items[].name` and `home.street` are in fields."""
    found = _END.search(path)
    return (path, "") if found is None else (path[: found.start()], path[found.start() :])
