"""Opens the servers of an environment, and makes its plan."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Self

import structlog

from cdc_common.clients.kafka import logged_admin
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.load import load_settings
from schematizer.settings import Settings
from schematizer.topic_files.applying.kafka import found_rights, read_rights, read_topics
from schematizer.topic_files.applying.quotas import Quotas
from schematizer.topic_files.applying.registry import Registry, topics_of
from schematizer.topic_files.planning.differences import make_plan, noted
from schematizer.topic_files.planning.order import missing_earlier
from schematizer.topic_files.planning.things import Kind, Thing
from schematizer.topic_files.planning.wanted import wishes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    from schematizer.topic_files.files.reading import Repository
    from schematizer.topic_files.planning.differences import Earlier, Plan

_SECRETS = ("kafka", "registry")


class Environment:
    """The servers of one environment. A context manager."""

    def __init__(self, repository: Repository, name: str, settings: Settings) -> None:
        """`settings`: those of the command, which count if the environment has no settings file. CdcError TOPIC_FILES
        for a name that the catalogue does not have.
        """
        known = repository.catalogue.environments
        if name not in known:
            problem = f"{repository.catalogue_path} has no environment {name}."
            raise CdcError(Code.TOPIC_FILES, problem, f"Choose one of {', '.join(known)}.")
        self.name = name
        self._repository = repository
        self._command_settings = settings
        self._stack = ExitStack()
        own = self._settings(name)
        self._registry_settings = own.registry
        self.registry = self._stack.enter_context(Registry(own.registry, repository.catalogue.pii_prefix))
        self.quotas = self._stack.enter_context(Quotas(own.kafka))
        self.admin = logged_admin(own.kafka, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def plan(self) -> Plan:
        """Compare the files with the servers."""
        wished = wishes(self._repository, self.name)
        kept = self.registry.kept(self.name)
        rights = read_rights(self.admin)
        if rights is None:
            structlog.get_logger(__name__).warning("rights are left out: the brokers have no authorizer")
            wished = wished.without_rights()
            kept = {thing: note for thing, note in kept.items() if thing.kind is not Kind.RIGHT}
        topics = sorted(topics_of(wished.own) | topics_of(kept))
        found = {
            **read_topics(self.admin, topics),
            **self.registry.read(topics, _sources(wished.own) | _sources(kept)),
            **self.quotas.read(),
            **found_rights(rights or []),
            **noted(kept),
        }
        return make_plan(self.name, wished, found, kept, self._earlier())

    def _earlier(self) -> Earlier | None:
        before = self._repository.catalogue.environments[self.name].after
        if before is None:
            return None
        settings = self._settings(before).registry
        if settings == self._registry_settings:
            return missing_earlier(self._repository, self.name, self.registry.kept(before))
        with Registry(settings, self._repository.catalogue.pii_prefix) as registry:
            return missing_earlier(self._repository, self.name, registry.kept(before))

    def _settings(self, environment: str) -> Settings:
        file = self._repository.catalogue.environments[environment].settings
        if file is None:
            return self._command_settings
        return load_settings(self._repository.root / file, {}, secrets_of=_SECRETS).of(Settings)


def _sources(things: Iterable[Thing]) -> set[str]:
    return {thing.name for thing in things if thing.kind is Kind.SOURCE}
