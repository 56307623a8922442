"""The registry's operations, without HTTP: subjects, versions, ids, levels and modes."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqlalchemy import ColumnElement, Connection, and_, delete, false, func, select, true, update

from schematizer.avro_schemas import elements
from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError, parse
from schematizer.confluent import errors
from schematizer.confluent.levels_and_modes import LevelsAndModes, level_in, level_of
from schematizer.model import registry_queries
from schematizer.model.given_ids import OtherSchemaError, add_schema, follow_ids
from schematizer.model.registry_tables import schemas, subject_settings, versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from schematizer.model.database import Database
    from schematizer.registration.register_version import Version

MAX_VERSION = 2**31 - 1
LATEST = None
"""The version number of `latest`."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One version of a subject."""

    # The subject's name.
    subject: str
    # The version's number.
    version: int
    # The schema's id.
    schema_id: int
    # The schema's text.
    text: str
    # The schema's SHA-256, in hex.
    digest: str

    @property
    def given(self) -> Given:
        return Given(self.schema_id, self.version)

    @property
    def guid(self) -> str:
        return guid_of(self.digest)


def guid_of(digest: str) -> str:
    """A name of the schema that is the same in every registry of this kind."""
    return str(uuid.UUID(digest[:32]))


def read_schema(text: str) -> AvroSchema:
    try:
        return parse(text)
    except InvalidSchemaError as error:
        raise errors.invalid_schema(str(error)) from error


class Given(NamedTuple):
    """The choice of a client in the mode IMPORT."""

    # The id of the schema.
    schema_id: int
    # The number of the version; None for the next one.
    version: int | None = None


class Counts(NamedTuple):
    """The content of the registry. Deleted versions count only as schemas."""

    # The number of subjects.
    subjects: int
    # The number of versions.
    versions: int
    # The number of schemas.
    schemas: int


class Observer(Protocol):
    """The catalogue's part in what changes, within the transaction that changes it."""

    def register(self, connection: Connection, subject: str, text: str) -> Version:
        """Make the schema a version of the subject, here and in the catalogue."""

    def add_registered(self, connection: Connection, subject: str, schema_id: int, text: str) -> None:
        """Add a version to the catalogue that is in the registry's tables."""

    def deleted(self, connection: Connection, subject: str) -> None: ...

    def used(self, subject: str | None, schema_id: int) -> None:
        """Note that a client asked for a schema by its id, or registered one again. Called outside of a transaction."""


class Store(LevelsAndModes):
    """The registry's operations, each in one transaction; RegistryError or InvalidSchemaError if it is refused."""

    def __init__(self, database: Database, observer: Observer) -> None:
        super().__init__(database)
        self._observer = observer

    def register(self, subject: str, text: str, given: Given | None = None) -> Registered:
        """The version with the schema, or a new version if there is none and the subject's level allows it. `given`: of
        a subject in mode IMPORT.
        """
        schema = read_schema(text)
        digest = registry_queries.digest_of(schema.canonical)
        known = self._database.read(lambda connection: _find(connection, subject, digest, deleted=False))
        if known is not None and (given is None or given in (known.given, known.given._replace(version=None))):
            self._observer.used(subject, known.schema_id)
            return known
        if given is None:
            return self._database.write(lambda connection: self._register(connection, subject, schema, digest))
        return self._database.write(lambda connection: self._import(connection, subject, schema, given))

    def _register(self, connection: Connection, subject: str, schema: AvroSchema, digest: str) -> Registered:
        known = _find(connection, subject, digest, deleted=False)
        if known is not None:
            return known
        _require_registrable(connection, subject, schema)
        added = self._observer.register(connection, subject, schema.canonical)
        return Registered(subject, added.number, added.schema_id, schema.canonical, digest)

    def _import(self, connection: Connection, subject: str, schema: AvroSchema, given: Given) -> Registered:
        if registry_queries.settings_of(connection, subject).mode != registry_queries.IMPORT:
            raise errors.operation_not_permitted(f"Subject {subject} is not in import mode")
        elements.check_number(schema.canonical)
        try:
            add_schema(connection, given.schema_id, schema.canonical)
        except OtherSchemaError:
            message = f"Overwrite new schema with id {given.schema_id} is not permitted."
            raise errors.operation_not_permitted(message) from None
        follow_ids(connection)
        number = given.version or registry_queries.last_version(connection, subject) + 1
        if not _has_version(connection, subject, number, given.schema_id):
            registry_queries.add_version(connection, subject, number, given.schema_id)
        self._observer.add_registered(connection, subject, given.schema_id, schema.canonical)
        return _version(connection, subject, number, deleted=False)

    def lookup(self, subject: str, text: str, *, deleted: bool) -> Registered:
        digest = registry_queries.digest_of(read_schema(text).canonical)

        def transaction(connection: Connection) -> Registered:
            found = _find(connection, subject, digest, deleted=deleted)
            if found is None:
                _versions(connection, subject, deleted=deleted)
                raise errors.schema_not_found()
            return found

        return self._database.read(transaction)

    def subjects(self, prefix: str, *, deleted: bool, only_deleted: bool) -> list[str]:
        query = select(versions.c.subject).distinct().order_by(versions.c.subject)
        alive = select(versions.c.subject).where(versions.c.deleted == false())
        if only_deleted:
            query = query.where(versions.c.subject.not_in(alive))
        elif not deleted:
            query = query.where(versions.c.deleted == false())
        rows = self._database.read(lambda connection: connection.execute(query).scalars().all())
        return [subject for subject in rows if subject.startswith(prefix)]

    def versions(self, subject: str, *, deleted: bool, only_deleted: bool) -> list[int]:
        def transaction(connection: Connection) -> list[int]:
            found = _versions(connection, subject, deleted=deleted or only_deleted)
            alive = set(_version_numbers(connection, subject, deleted=False)) if only_deleted else set()
            return [registered.version for registered in found if registered.version not in alive]

        return self._database.read(transaction)

    def version(self, subject: str, version: str, *, deleted: bool) -> Registered:
        """`version`: as in the URL, a number, -1 or latest."""
        number = version_number(version)
        return self._database.read(lambda connection: _version(connection, subject, number, deleted=deleted))

    def every_version(
        self, choose: Callable[[list[tuple[str, int]]], list[tuple[str, int]]], prefix: str, *, deleted: bool
    ) -> list[Registered]:
        """The versions that `choose` picks from the (subject, version)s of subjects with the prefix, in order."""

        def transaction(connection: Connection) -> list[Registered]:
            query = select(versions.c.subject, versions.c.version).where(_alive(deleted=deleted))
            there = connection.execute(query.order_by(versions.c.subject, versions.c.version))
            wanted = choose([(row.subject, row.version) for row in there if row.subject.startswith(prefix)])
            numbers = set(wanted)
            found: list[Registered] = []
            for subject in dict.fromkeys(subject for subject, _ in wanted):
                every = _found(connection, subject, deleted=deleted)
                found += [registered for registered in every if (subject, registered.version) in numbers]
            return found

        return self._database.read(transaction)

    def schema(self, schema_id: int, *, is_use: bool = True) -> tuple[str, str]:
        """(text, guid) of an id, even if its versions are deleted."""
        query = select(schemas.c.text, schemas.c.digest).where(schemas.c.id == schema_id)
        row = self._database.read(lambda connection: connection.execute(query).first())
        if row is None:
            raise errors.schema_not_found(schema_id)
        if is_use:
            self._observer.used(None, schema_id)
        return row.text, guid_of(row.digest)

    def schema_of_guid(self, guid: str) -> str:
        try:
            digest = uuid.UUID(guid).hex
        except ValueError:
            raise errors.schema_not_found(guid) from None
        query = select(schemas.c.text).where(schemas.c.digest.startswith(digest))
        text = self._database.read(lambda connection: connection.execute(query).scalar())
        if text is None:
            raise errors.schema_not_found(guid)
        return str(text)

    def counts(self) -> Counts:
        of_versions = select(func.count(versions.c.subject.distinct()), func.count()).where(_alive(deleted=False))

        def transaction(connection: Connection) -> Counts:
            subjects, numbers = connection.execute(of_versions).one()
            return Counts(subjects, numbers, connection.execute(select(func.count()).select_from(schemas)).scalar_one())

        return self._database.read(transaction)

    def max_id(self) -> int:
        return self._database.read(lambda connection: connection.execute(select(func.max(schemas.c.id))).scalar()) or 0

    def uses(self, schema_id: int, *, deleted: bool) -> list[tuple[str, int]]:
        """The (subject, version)s of an id."""
        self.schema(schema_id, is_use=False)
        query = (
            select(versions.c.subject, versions.c.version)
            .where(versions.c.schema_id == schema_id, _alive(deleted=deleted))
            .order_by(versions.c.subject, versions.c.version)
        )
        rows = self._database.read(lambda connection: connection.execute(query).all())
        return [(row.subject, row.version) for row in rows]

    def topics(self, schema_id: int) -> list[str]:
        """Those that have or had the schema: also after its versions were deleted for good."""
        return self._database.read(lambda connection: registry_queries.topics_with(connection, schema_id))

    def check_compatibility(self, subject: str, text: str, version: str | None) -> list[str]:
        """The conflicts of the schema with one version, or (None) with those that the subject's level requires."""
        schema = read_schema(text)
        number = None if version is None else version_number(version)

        def transaction(connection: Connection) -> list[str]:
            level = level_of(connection, subject)
            if version is None:
                earlier = _compared(connection, subject, level)
            elif number is LATEST:
                earlier = _found(connection, subject, deleted=False, last=1)
            else:
                earlier = _found(connection, subject, versions.c.version == number, deleted=False)
                if not earlier:
                    raise errors.version_not_found(number)
            return conflicts(level, schema, _parsed(earlier))

        return self._database.read(transaction)

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """The deleted versions. Schemas stay readable by their ids, even after a permanent deletion."""

        def transaction(connection: Connection) -> list[int]:
            _require_writable(connection, subject)
            every = _versions(connection, subject, deleted=True)
            alive = _version_numbers(connection, subject, deleted=False)
            if permanent:
                if alive:
                    raise errors.subject_not_soft_deleted(subject)
                connection.execute(delete(versions).where(versions.c.subject == subject))
                return [registered.version for registered in every]
            if not alive:
                raise errors.subject_soft_deleted(subject)
            connection.execute(update(versions).where(versions.c.subject == subject).values(deleted=True))
            connection.execute(delete(subject_settings).where(subject_settings.c.subject == subject))
            self._observer.deleted(connection, subject)
            return alive

        return self._database.write(transaction)

    def delete_version(self, subject: str, version: str, *, permanent: bool) -> int:
        wanted = version_number(version)

        def transaction(connection: Connection) -> int:
            _require_writable(connection, subject)
            alive = _version_numbers(connection, subject, deleted=False)
            number = _version(connection, subject, wanted, deleted=wanted is not LATEST).version
            this = and_(versions.c.subject == subject, versions.c.version == number)
            if permanent:
                if number in alive:
                    raise errors.version_not_soft_deleted(subject, number)
                connection.execute(delete(versions).where(this))
            else:
                if number not in alive:
                    raise errors.version_soft_deleted(subject, number)
                connection.execute(update(versions).where(this).values(deleted=True))
                self._observer.deleted(connection, subject)
            return number

        return self._database.write(transaction)


def version_number(text: str) -> int | None:
    if text in ("latest", "-1"):
        return LATEST
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:20]) <= MAX_VERSION:
        raise errors.invalid_version(text)
    return int(text)


def _alive(*, deleted: bool) -> ColumnElement[bool]:
    return true() if deleted else versions.c.deleted == false()


def _found(
    connection: Connection, subject: str, *conditions: ColumnElement[bool], deleted: bool, last: int | None = None
) -> list[Registered]:
    """The oldest first; the `last` ones alone, if it is set."""
    query = (
        select(versions.c.subject, versions.c.version, versions.c.schema_id, schemas.c.text, schemas.c.digest)
        .join(schemas, schemas.c.id == versions.c.schema_id)
        .where(versions.c.subject == subject, _alive(deleted=deleted), *conditions)
        .order_by(versions.c.version.desc())
        .limit(last)
    )
    return [Registered(*row) for row in connection.execute(query)][::-1]


def _find(connection: Connection, subject: str, digest: str, *, deleted: bool) -> Registered | None:
    found = _found(connection, subject, registry_queries.has_digest(digest), deleted=deleted)
    return found[-1] if found else None


def _versions(connection: Connection, subject: str, *, deleted: bool) -> list[Registered]:
    found = _found(connection, subject, deleted=deleted)
    if not found:
        raise errors.subject_not_found(subject)
    return found


def _version_numbers(connection: Connection, subject: str, *, deleted: bool) -> list[int]:
    return [registered.version for registered in _found(connection, subject, deleted=deleted)]


def _version(connection: Connection, subject: str, number: int | None, *, deleted: bool) -> Registered:
    found = _versions(connection, subject, deleted=deleted)
    if number is LATEST:
        return found[-1]
    match = next((registered for registered in found if registered.version == number), None)
    if match is None:
        raise errors.version_not_found(number)
    return match


def _has_version(connection: Connection, subject: str, number: int, schema_id: int) -> bool:
    """Whether the version is there with this schema, deleted or not; then it is not deleted any more. RegistryError if
    it has another schema.
    """
    this = and_(versions.c.subject == subject, versions.c.version == number)
    known = connection.execute(select(versions.c.schema_id).where(this)).scalar()
    if known not in (None, schema_id):
        raise errors.operation_not_permitted(f"Version {number} of subject {subject} has the schema {known}")
    connection.execute(update(versions).where(this).values(deleted=False))
    return known is not None


def _require_registrable(connection: Connection, subject: str, schema: AvroSchema) -> None:
    """RegistryError if the subject is read-only, or its level does not allow the schema."""
    settings = _require_writable(connection, subject)
    if settings.mode == registry_queries.IMPORT:
        raise errors.operation_not_permitted(f"Subject {subject} is not in read-write mode")
    level = level_in(settings)
    messages = conflicts(level, schema, _parsed(_compared(connection, subject, level)))
    if messages:
        raise errors.incompatible(subject, [*messages, f"level: {level.name}"])
    elements.check_number(schema.canonical)


def _compared(connection: Connection, subject: str, level: Level) -> list[Registered]:
    """The versions that the level compares a new schema with, oldest first."""
    if level is Level.NONE:
        return []
    return _found(connection, subject, deleted=False, last=None if level.transitive else 1)


def _parsed(earlier: Sequence[Registered]) -> list[tuple[int, AvroSchema]]:
    return [(registered.version, parse(registered.text)) for registered in earlier]


def _require_writable(connection: Connection, subject: str) -> registry_queries.Settings:
    settings = registry_queries.settings_of(connection, subject)
    if settings.is_read_only:
        raise errors.operation_not_permitted(f"Subject {subject} is in read-only mode")
    return settings
