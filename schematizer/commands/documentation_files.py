"""Documentation files: one for each source, TOML or YAML, kept in git."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from cdc_common.clients.registry.views import FieldText, SourceDocumentation
from schematizer.topic_files.files.base import FileModel
from schematizer.topic_files.files.parsing import FileError, read_model
from schematizer.topic_files.files.topic_file import DocumentedField  # noqa: TC001 - pydantic reads annotations

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = (".toml", ".yaml", ".yml")


class DocumentationFile(FileModel):
    """`doc`: None leaves what the catalogue has, such as Cassandra's comment. `fields`: by path; of a
    table's column, the name of its field.
    """

    # The name of the namespace.
    namespace: str
    # The name of the source.
    source: str
    # The documentation; None leaves what the catalogue has, such as Cassandra's comment.
    doc: str | None = None
    # The owner.
    owner: str | None = None
    # The entries of fields, by path; of a table's column, the path is the name of its field.
    fields: Annotated[dict[str, DocumentedField], Field(default_factory=dict)]

    @property
    def name(self) -> str:
        return f"{self.namespace}/{self.source}"

    def documentation(self, known_doc: str | None) -> SourceDocumentation:
        """Return the documentation to apply. `known_doc`: the source's doc in the catalogue, kept if the
        file has none.
        """
        fields = {
            path: FieldText(doc=field.doc, owner=field.owner, pii=field.pii) for path, field in self.fields.items()
        }
        return SourceDocumentation(doc=self.doc or known_doc, owner=self.owner, fields=fields)


class Read(NamedTuple):
    """Read the files. Returns a file for each path, and a line for each file that cannot be read."""

    # The files that were read, by their paths.
    files: dict[Path, DocumentationFile]
    # A line for each file that cannot be read.
    problems: list[str]


def read_files(paths: Iterable[Path]) -> Read:
    """Reads the files at the paths. A folder stands for all files of a known suffix in it, however deep."""
    read = Read({}, [])
    sources: dict[str, Path] = {}
    given = tuple(paths)
    found = _expanded(given)
    if not found:
        read.problems.append(f"{', '.join(map(str, given))}: no file ends in {', '.join(SUFFIXES)}")
    for path in found:
        try:
            file = _read(path)
        except FileError as error:
            read.problems.append(f"{path}: {error}")
            continue
        first = sources.setdefault(file.name, path)
        if first != path:
            read.problems.append(f"{path}: {file.name} is in {first} too")
        read.files[path] = file
    return read


def lacking(path: Path, file: DocumentationFile) -> list[str]:
    """A line for each thing that a file should say itself."""
    found = [] if file.owner else [f"{path}: {file.name} has no owner"]
    return found + [f"{path}: the field {name} has no doc" for name, field in file.fields.items() if not field.doc]


def _expanded(paths: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES)
        else:
            found.append(path)
    return found


def _read(path: Path) -> DocumentationFile:
    """FileError."""
    if path.suffix not in SUFFIXES:
        raise FileError([f"it is none of {', '.join(SUFFIXES)}"])
    return read_model(path, DocumentationFile)
