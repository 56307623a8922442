"""The topics that topic files choose for a job, as the registry notes them (docs/guides/topic-files.md).

`topics apply` notes what each file says for each program: a job that names an environment of the files takes its topics
from there, as it takes those of its settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.messages.topics import matches
from stream_runtime.driver.chosen_topics import ChosenTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from cdc_common.clients.registry.views import Managed
    from cdc_common.settings import RegistrySettings
    from stream_runtime.driver.chosen_topics import KnownTopics
    from stream_runtime.faults import Faults
    from stream_runtime.settings import ChosenTopicsSettings

_PENDING = "pending"
"""A word in what is noted about a thing that an apply has begun to make."""


class FileTopics:
    """Asks for the topics of a deployment. Without one there are none."""

    def __init__(self, registry: RegistrySettings, deployment: str, kind: str, program: str = "") -> None:
        """`kind`: of the notes. `program`: what their names end with, if several programs have notes of this kind."""
        self.deployment = deployment
        self._registry = registry
        self._kind = kind
        self._program = program
        self._client: SchematizerClient | None = None
        self._topics: dict[str, dict[str, Any]] | None = None

    def read(self) -> Mapping[str, dict[str, Any]]:
        """Return what the files say, by topic. While the registry is away the last answer counts; CdcError
        REGISTRY_UNREACHABLE without one.
        """
        if not self.deployment:
            return {}
        try:
            if self._client is None:
                self._client = SchematizerClient.of_settings(self._registry)
            noted = self._client.managed(self.deployment, self._kind)
        except RegistryRequestError as error:
            if self._topics is None or not error.is_retried:
                raise
            structlog.get_logger(__name__).warning("topic files wait for the registry", reason=error.problem)
            return self._topics
        self._topics = {topic: one.content for one in noted if (topic := self._topic(one))}
        return self._topics

    def _topic(self, noted: Managed) -> str:
        """The topic of a note; empty if it is not for this program."""
        topic, _, program = noted.name.partition(" ")
        return topic if program == self._program and _PENDING not in noted.about else ""


class FileChosenTopics(ChosenTopics):
    """Topics that the settings or topic files choose."""

    def __init__(
        self,
        known: KnownTopics,
        settings: ChosenTopicsSettings,
        faults: Faults,
        clock: Callable[[], float],
        files: FileTopics,
    ) -> None:
        super().__init__(known, settings, faults, clock)
        self._files = files
        self.from_files: Mapping[str, dict[str, Any]] = {}

    def find_topics(self) -> list[str]:
        """The names of the topics that the settings or topic files choose. CdcError if the settings name none."""
        if not self._files.deployment:
            return super().find_topics()
        self.from_files = self._files.read()
        return self.chosen_topics()

    def is_chosen(self, topic: str) -> bool:
        """Whether the settings or a topic file choose the topic."""
        return super().is_chosen(topic) or (
            topic in self.from_files and not matches(topic, self._settings.excluded_topics)
        )
