"""The addresses of Watson's pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from cdc_common.clients.registry.kinds import About

if TYPE_CHECKING:
    from cdc_common.clients.registry.views import CatalogueEntry


@dataclass(frozen=True, slots=True)
class Links:
    """The links of pages."""

    # The path at which Watson is mounted.
    root: str

    def to(self, *parts: str, **query: object) -> str:
        """A page by the parts of its path."""
        path = "/".join((self.root, *(quote(part, safe="") for part in parts)))
        given = {name: value for name, value in query.items() if value is not None}
        return f"{path}?{urlencode(given)}" if given else path

    def front(self) -> str:
        return f"{self.root}/"

    def namespace(self, name: str) -> str:
        return self.to("namespaces", name)

    def source(self, namespace: str, name: str) -> str:
        return self.to("sources", namespace, name)

    def field(self, namespace: str, source: str, path: str) -> str:
        return self.to("sources", namespace, source, "fields", path)

    def history(self, namespace: str, source: str) -> str:
        return self.to("sources", namespace, source, "history")

    def topic(self, name: str) -> str:
        return self.to("topics", name)

    def schema(self, schema_id: int) -> str:
        return self.to("schemas", str(schema_id))

    def target(self, name: str) -> str:
        return self.to("data-targets", name)

    def tag(self, name: str) -> str:
        return self.to("tags", name)

    def place(self, place: CatalogueEntry) -> str:
        """The page of what a search found, or of what a note is about."""
        namespace, source = place.namespace or "", place.source or ""
        match place.about:
            case About.NAMESPACE:
                return self.namespace(place.name)
            case About.SOURCE:
                return self.source(namespace, place.name)
            case About.FIELD:
                return self.field(namespace, source, place.name)
            case About.TOPIC:
                return self.topic(place.name)
            case About.SCHEMA:
                return self.schema(int(place.name))
            case About.DATA_TARGET:
                return self.target(place.name)
