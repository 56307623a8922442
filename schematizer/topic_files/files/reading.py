"""Reads a repository of topic files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cdc_common.errors.codes import CdcError, Code
from schematizer.avro_schemas.elements import Element, elements
from schematizer.avro_schemas.parsing import AvroSchema, InvalidSchemaError, parse
from schematizer.topic_files.files.catalogue_file import CatalogueFile, Typology
from schematizer.topic_files.files.parsing import FileError, files_named, read_model
from schematizer.topic_files.files.source_file import SourceFile
from schematizer.topic_files.files.topic_file import TopicFile

CATALOGUE, TOPIC, SOURCE = "catalogue", "topic", "source"
SCHEMAS, KEY = "schemas", "key"
_NUMBER = re.compile(r"([0-9]+)(?:[-_].*)?")


class SchemaFile(NamedTuple):
    """A file of `schemas/`."""

    # Its path, relative to the repository.
    path: str
    # Its schema; None if the file holds none.
    schema: AvroSchema | None
    # Why it holds none.
    problem: str = ""


class Unread(NamedTuple):
    """A file or a folder that cannot be read as what it should be."""

    # Its path, relative to the repository.
    path: str
    # The code of the rule.
    rule: str
    # Why.
    problem: str


@dataclass(frozen=True)
class TopicFolder:
    """One topic in one environment."""

    # The path of its topic file, relative to the repository.
    path: str
    # The names of the folders above, one for each level.
    levels: tuple[str, ...]
    # The environment.
    environment: str
    # What the file says.
    file: TopicFile
    # Kafka's name of the topic.
    name: str
    # The schemas of values, in order.
    schemas: tuple[SchemaFile, ...]
    # The schema of keys; None without one.
    key: SchemaFile | None
    # Files of `schemas/` whose names say no place in the order.
    unordered: tuple[str, ...] = ()

    @property
    def values(self) -> list[AvroSchema]:
        """The schemas of values that could be parsed, in order."""
        return [file.schema for file in self.schemas if file.schema is not None]

    @property
    def newest_elements(self) -> list[Element]:
        """The fields of the newest schema; none without one."""
        return elements(self.values[-1].canonical) if self.values else []


@dataclass(frozen=True)
class SourceFolder:
    """The documentation of one source in one environment."""

    # The path of its file, relative to the repository.
    path: str
    # The environment.
    environment: str
    # What the file says.
    file: SourceFile


@dataclass(frozen=True)
class Repository:
    """The files of a repository."""

    # Its folder.
    root: Path
    # The path of its catalogue file, relative to it.
    catalogue_path: str
    # What the catalogue file says.
    catalogue: CatalogueFile
    # The topics of all environments, by path.
    topics: tuple[TopicFolder, ...]
    # The sources of all environments that only have documentation, by path.
    sources: tuple[SourceFolder, ...]
    # What could not be read.
    unread: tuple[Unread, ...]

    def of_environment(self, environment: str) -> list[TopicFolder]:
        """Return the topics of one environment."""
        return [topic for topic in self.topics if topic.environment == environment]

    def sources_of(self, environment: str) -> list[SourceFolder]:
        """Return the documented sources of one environment."""
        return [source for source in self.sources if source.environment == environment]

    def typology(self, topic: TopicFolder) -> Typology | None:
        """Return the topic's typology; None if the catalogue has none of that name."""
        return self.catalogue.typologies.get(topic.file.typology)


def read_repository(root: Path) -> Repository:
    """CdcError TOPIC_FILES if the folder has no catalogue file that can be read. Other files that
    cannot be read are among `unread`.
    """
    found = files_named(root, CATALOGUE)
    if len(found) != 1:
        problem = f"{root} has {'several files' if found else 'no file'} catalogue.toml, .json or .yaml."
        raise CdcError(Code.TOPIC_FILES, problem, "Name the folder of a repository of topic files, with one of them.")
    try:
        catalogue = read_model(found[0], CatalogueFile)
    except FileError as error:
        raise CdcError(Code.TOPIC_FILES, f"{found[0]}: {error}.", "Correct the file.") from error
    reader = _Reader(root, catalogue)
    reader.read()
    return Repository(root, found[0].name, catalogue, tuple(reader.topics), tuple(reader.sources), tuple(reader.unread))


class _Reader:
    """Walks the folders of a repository."""

    def __init__(self, root: Path, catalogue: CatalogueFile) -> None:
        self._root = root
        self._catalogue = catalogue
        self.topics: list[TopicFolder] = []
        self.sources: list[SourceFolder] = []
        self.unread: list[Unread] = []

    def read(self) -> None:
        for folder, folders, files in os.walk(self._root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            stems = {Path(file).stem for file in files}
            if TOPIC in stems:
                self._read_folder(Path(folder), TOPIC)
            if SOURCE in stems:
                self._read_folder(Path(folder), SOURCE)

    def _read_folder(self, folder: Path, stem: str) -> None:
        paths = files_named(folder, stem)
        if not paths:
            return
        place = self._relative(paths[0])
        *levels, environment = folder.relative_to(self._root).parts or ("",)
        wanted = len(self._catalogue.levels)
        if len(levels) != wanted or environment not in self._catalogue.environments:
            shape = "/".join((*self._catalogue.levels, "|".join(self._catalogue.environments)))
            self.unread.append(Unread(place, "T002", f"its folder is not {shape}/"))
        elif len(paths) > 1:
            self.unread.append(Unread(place, "T003", f"the folder has {' and '.join(path.name for path in paths)}"))
        elif stem == TOPIC:
            self._read_topic(paths[0], tuple(levels), environment)
        else:
            self._read_source(paths[0], environment)

    def _read_source(self, path: Path, environment: str) -> None:
        try:
            file = read_model(path, SourceFile)
        except FileError as error:
            self.unread += [Unread(self._relative(path), "T001", reason) for reason in error.reasons]
            return
        self.sources.append(SourceFolder(self._relative(path), environment, file))

    def _read_topic(self, path: Path, levels: tuple[str, ...], environment: str) -> None:
        try:
            file = read_model(path, TopicFile)
        except FileError as error:
            self.unread += [Unread(self._relative(path), "T001", reason) for reason in error.reasons]
            return
        ordered, key, unordered = self._schemas(path.parent / SCHEMAS)
        name = topic_name(self._catalogue, levels, environment, file)
        self.topics.append(TopicFolder(self._relative(path), levels, environment, file, name, ordered, key, unordered))

    def _schemas(self, folder: Path) -> tuple[tuple[SchemaFile, ...], SchemaFile | None, tuple[str, ...]]:
        """The schemas of values in order, that of keys, and the paths of files without a place in the order."""
        numbered: list[tuple[int, SchemaFile]] = []
        key, unordered = None, []
        for path in sorted(folder.glob("*.avsc")):
            number = _NUMBER.fullmatch(path.stem)
            if path.stem == KEY:
                key = self._schema(path)
            elif number is None:
                unordered.append(self._relative(path))
            else:
                numbered.append((int(number[1]), self._schema(path)))
        numbered.sort(key=lambda entry: entry[0])
        return tuple(schema for _, schema in numbered), key, tuple(unordered)

    def _schema(self, path: Path) -> SchemaFile:
        relative = self._relative(path)
        try:
            return SchemaFile(relative, parse(path.read_text(encoding="utf-8")))
        except (InvalidSchemaError, OSError, ValueError) as error:
            return SchemaFile(relative, None, " ".join(str(error).split()))

    def _relative(self, path: Path) -> str:
        return path.relative_to(self._root).as_posix()


def topic_name(catalogue: CatalogueFile, levels: tuple[str, ...], environment: str, file: TopicFile) -> str:
    """The name of Kafka's topic: the file's own, or made of the folders."""
    if file.name is not None:
        return file.name
    template = catalogue.environments[environment].name or catalogue.name
    name = template.replace("{environment}", environment)
    for level, folder in zip(catalogue.levels, levels, strict=True):
        name = name.replace(f"{{{level}}}", folder)
    return name if file.pii == "none" else f"{catalogue.pii_prefix}{name}"
