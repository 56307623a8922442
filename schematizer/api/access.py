"""The rights of a REST request to write, and the namespace that its path names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.access import Access, Role
from schematizer.topic_names import parse_topic

if TYPE_CHECKING:
    from starlette.requests import Request

    from schematizer.service import Catalogue


def namespace_of(request: Request, pii_prefix: str) -> str | None:
    """The path's namespace, or its topic's; None for a path of neither."""
    if "topic" in request.path_params:
        return parse_topic(request.path_params["topic"], pii_prefix).namespace
    found: str | None = request.path_params.get("namespace")
    return found


class Writers:
    """Asks for the right to write."""

    def __init__(self, catalogue: Catalogue, access: Access) -> None:
        self._access = access
        self._pii_prefix = catalogue.rules.pii_prefix

    def of_namespace(self, request: Request, namespace: str | None) -> str:
        """The name of a writer of the namespace (None: of every namespace)."""
        return self._access.require(request, Role.WRITER, namespace).name

    def of_topic(self, request: Request, topic: str) -> str:
        return self.of_namespace(request, self._namespace_of(topic))

    def reader_of_topic(self, request: Request, topic: str) -> str:
        """The name of a reader, for what a reader says of itself."""
        return self._access.require(request, Role.READER, self._namespace_of(topic)).name

    def _namespace_of(self, topic: str) -> str:
        return parse_topic(topic, self._pii_prefix).namespace
