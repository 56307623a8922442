"""The compatibility levels and modes of subjects, and those of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import false, select

from schematizer.avro_schemas.compatibility import Level
from schematizer.confluent import errors
from schematizer.model import registry_queries
from schematizer.model.registry_tables import GLOBAL, versions

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from schematizer.model.database import Database

DEFAULT_LEVEL = Level.BACKWARD
_NOTHING = (None, None)
MODES = (registry_queries.READ_WRITE, registry_queries.READ_ONLY, registry_queries.IMPORT)


class Config(NamedTuple):
    """The configuration of a subject."""

    # The compatibility level; None if it is not set.
    level: Level | None
    # Whether schemas are normalised, as a client has set it: they always are. None if it is not set.
    normalize: bool | None = None


class LevelsAndModes:
    """The settings of subjects (GLOBAL: of all others). RegistryError if a request is refused."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def config(self, subject: str, *, or_global: bool) -> Config:
        """The configuration set for the subject; its level is the global one if it has only the rest."""

        def transaction(connection: Connection) -> Config:
            own = _own_config(connection, subject)
            if own == _NOTHING and subject != GLOBAL and not or_global:
                raise errors.no_compatibility_of_subject(subject)
            return own._replace(level=level_of(connection, subject))

        return self._database.read(transaction)

    def level(self, subject: str, *, or_global: bool) -> Level:
        """The level set for the subject (GLOBAL: for all others)."""
        return self.config(subject, or_global=or_global).level or DEFAULT_LEVEL

    def set_config(self, subject: str, config: Config) -> None:
        """Set what is not None."""

        def transaction(connection: Connection) -> None:
            if config.level is not None:
                registry_queries.change(connection, subject, "compatibility", config.level.name)
            if config.normalize is not None:
                registry_queries.change(connection, subject, "normalize", config.normalize)

        self._database.write(transaction)

    def set_level(self, subject: str, level: Level) -> None:
        self.set_config(subject, Config(level))

    def delete_config(self, subject: str) -> Config:
        """Reset to the global level, or the global level to the default. Returns the previous configuration."""

        def transaction(connection: Connection) -> Config:
            own = _own_config(connection, subject)
            if own == _NOTHING and subject != GLOBAL:
                raise errors.subject_not_found(subject)
            for name in ("compatibility", "normalize"):
                registry_queries.change(connection, subject, name, None)
            return own._replace(level=own.level or DEFAULT_LEVEL)

        return self._database.write(transaction)

    def mode(self, subject: str, *, or_global: bool) -> str:
        def transaction(connection: Connection) -> str:
            own = registry_queries.setting(connection, subject, "mode")
            if own is None and subject != GLOBAL and not or_global:
                raise errors.no_mode_of_subject(subject)
            return registry_queries.settings_of(connection, subject).mode or registry_queries.READ_WRITE

        return self._database.read(transaction)

    def set_mode(self, subject: str, mode: str, *, force: bool = False) -> None:
        """Set the mode. Without `force` IMPORT needs a subject, for GLOBAL a registry, without versions that are not
        deleted.
        """

        def transaction(connection: Connection) -> None:
            before = registry_queries.settings_of(connection, subject).mode
            if mode == registry_queries.IMPORT != before and not force and _has_versions(connection, subject):
                raise errors.operation_not_permitted("Cannot import since found existing subjects")
            registry_queries.change(connection, subject, "mode", mode)

        self._database.write(transaction)

    def delete_mode(self, subject: str) -> str:
        def transaction(connection: Connection) -> str:
            own = registry_queries.setting(connection, subject, "mode")
            if own is None and subject != GLOBAL:
                raise errors.subject_not_found(subject)
            registry_queries.change(connection, subject, "mode", None)
            return own or registry_queries.READ_WRITE

        return self._database.write(transaction)


def level_of(connection: Connection, subject: str) -> Level:
    return level_in(registry_queries.settings_of(connection, subject))


def level_in(settings: registry_queries.Settings) -> Level:
    return Level[settings.compatibility] if settings.compatibility else DEFAULT_LEVEL


def _has_versions(connection: Connection, subject: str) -> bool:
    query = select(versions.c.subject).where(versions.c.deleted == false()).limit(1)
    if subject != GLOBAL:
        query = query.where(versions.c.subject == subject)
    return connection.execute(query).first() is not None


def _own_config(connection: Connection, subject: str) -> Config:
    level = registry_queries.setting(connection, subject, "compatibility")
    return Config(None if level is None else Level[level], registry_queries.setting(connection, subject, "normalize"))
