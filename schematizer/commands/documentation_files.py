"""Documentation files outside of a repository of topic files: one for each source, TOML or YAML."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from schematizer.topic_files.files.parsing import FileError, read_model
from schematizer.topic_files.files.source_file import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = (".toml", ".yaml", ".yml")


class Read(NamedTuple):
    """Read the files. Returns a file for each path, and a line for each file that cannot be read."""

    # The files that were read, by their paths.
    files: dict[Path, SourceFile]
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


def lacking(path: Path, file: SourceFile) -> list[str]:
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


def _read(path: Path) -> SourceFile:
    """FileError."""
    if path.suffix not in SUFFIXES:
        raise FileError([f"it is none of {', '.join(SUFFIXES)}"])
    return read_model(path, SourceFile)
