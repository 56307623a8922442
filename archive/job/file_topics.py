"""The topics that topic files want to be archived, as the registry notes them (docs/guides/topic-files.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import structlog

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.clients.registry.views import Managed
    from cdc_common.settings import RegistrySettings

_KEYS = ("layout", "bucket", "table", "format")


class FileTopics:
    """Asks for the topics of a deployment. Without one there are none."""

    def __init__(self, registry: RegistrySettings, deployment: str) -> None:
        self._registry = registry
        self._deployment = deployment
        self._client: SchematizerClient | None = None
        self._topics: dict[str, dict[str, Any]] | None = None

    def read(self) -> Mapping[str, dict[str, Any]]:
        """Return the fields of definitions, by topic. While the registry is away the last answer counts; CdcError
        REGISTRY_UNREACHABLE without one.
        """
        if not self._deployment:
            return {}
        try:
            if self._client is None:
                self._client = SchematizerClient.of_settings(self._registry)
            noted = self._client.managed(self._deployment, "topic")
        except RegistryRequestError as error:
            if self._topics is None or not error.is_retried:
                raise
            structlog.get_logger(__name__).warning("topic files wait for the registry", reason=error.problem)
            return self._topics
        self._topics = {topic.name: _definition(topic) for topic in noted if "archive" in topic.about}
        return self._topics


def _definition(topic: Managed) -> dict[str, Any]:
    """The fields of a definition that the file of the topic sets."""
    said = json.loads(topic.about["archive"])
    fields = {key: said[key] for key in _KEYS if said.get(key)}
    if said.get("event_time"):
        fields["event_time"] = tuple(said["event_time"])
    return fields
