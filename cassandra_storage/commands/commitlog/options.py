"""The options that all commands of cassandra-commitlog share, and the segments that they select."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cassandra_storage.commands.commitlog.dump import Bound
from cassandra_storage.commands.commitlog.mutations import Damaged, MutationReader
from cassandra_storage.commands.commitlog.schemas import Schemas
from cassandra_storage.commands.commitlog.segments import SegmentFile, SegmentWalk, find_segments
from cassandra_storage.commands.terminal_progress import Progress
from cassandra_storage.files.codecs import SegmentCodecs
from cassandra_storage.files.keystore import KeystoreError, read_keys
from cassandra_storage.files.schema_file import read_schema_files
from cassandra_storage.formats.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cassandra_storage.commands.commitlog.mutations import Event
    from cassandra_storage.formats.schema.tables import TableMetadata

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER_OR_FILE = click.Path(exists=True, path_type=Path)
_BOUND = re.compile(r"(?:(\d{1,18}):)?(\d{1,10})")


def _segments(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> list[SegmentFile]:
    try:
        found = find_segments(paths)
    except FormatError as error:
        raise click.BadParameter(str(error)) from None
    except OSError as error:
        raise click.BadParameter(f"{error.filename} cannot be read: {error.strerror}") from None
    if not found:
        raise click.BadParameter("no commit log segment found (CommitLog-<version>-<id>.log)")
    return found


def _tables(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> list[TableMetadata]:
    try:
        return read_schema_files(list(paths))
    except FormatError as error:
        raise click.BadParameter(str(error)) from None


def parse_bound(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Bound | None:
    if text is None:
        return None
    match = _BOUND.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is neither a position nor <segment id>:<position>")
    return Bound(int(match[2]), None if match[1] is None else int(match[1]))


def _codecs(keystore: Path | None, password_file: Path | None, key_password_file: Path | None) -> SegmentCodecs:
    if keystore is None:
        return SegmentCodecs()
    try:
        password = _secret(password_file, "CASSANDRA_COMMITLOG_KEYSTORE_PASSWORD")
        if password is None:
            raise click.UsageError(
                "--keystore needs --keystore-password-file, or CASSANDRA_COMMITLOG_KEYSTORE_PASSWORD in the environment"
            )
        key_password = _secret(key_password_file, "CASSANDRA_COMMITLOG_KEY_PASSWORD")
        return SegmentCodecs(read_keys(keystore, password, key_password))
    except KeystoreError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.UsageError(f"{error.filename} cannot be read: {error.strerror}") from None


def _secret(file: Path | None, variable: str) -> str | None:
    if file is None:
        return os.environ.get(variable)
    try:
        return file.read_text("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} holds no password: it is not text") from None


def segment_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options to a command, whose first parameter is then a SegmentInput."""

    @click.argument("segments", type=_FOLDER_OR_FILE, nargs=-1, required=True, metavar="PATH...", callback=_segments)
    @click.option(
        "--schema",
        "tables",
        type=_FILE,
        metavar="FILE",
        multiple=True,
        callback=_tables,
        help="CQL with IDs (schema.cql of a snapshot, DESCRIBE ... WITH INTERNALS), a publisher's schema.json, or "
        "messages of <prefix>.tables, one per line; may be repeated.",
    )
    @click.option("--keystore", type=_FILE, metavar="FILE", help="For encrypted segments: Cassandra's JCEKS keystore.")
    @click.option(
        "--keystore-password-file",
        type=_FILE,
        metavar="FILE",
        help="File that holds the keystore's password.  [default: $CASSANDRA_COMMITLOG_KEYSTORE_PASSWORD]",
    )
    @click.option(
        "--key-password-file",
        type=_FILE,
        metavar="FILE",
        help="File that holds the keys' password, if it differs.  [default: $CASSANDRA_COMMITLOG_KEY_PASSWORD]",
    )
    @functools.wraps(command)
    def with_segments(
        *,
        segments: list[SegmentFile],
        tables: list[TableMetadata],
        keystore: Path | None,
        keystore_password_file: Path | None,
        key_password_file: Path | None,
        **others: Any,  # noqa: ANN401  the command's own
    ) -> None:
        codecs = _codecs(keystore, keystore_password_file, key_password_file)
        command(SegmentInput(segments, MutationReader(Schemas(tables), codecs)), **others)

    return with_segments


class SegmentInput:
    """The input of a command, segment by segment."""

    def __init__(self, segments: list[SegmentFile], reader: MutationReader) -> None:
        self.files = segments
        self._reader = reader
        self._progress = Progress()
        self._number = 0
        self._mutations = 0

    def walks(self) -> Iterator[SegmentWalk]:
        for file in self.files:
            self._number += 1
            yield self._reader.walk(file)

    def events(self, walk: SegmentWalk) -> Iterator[Event]:
        try:
            for event in self._reader.events(walk):
                self._mutations += 1
                if not self._mutations % 256:
                    self._progress.show(f"segment {self._number} of {len(self.files)}, {self._mutations} mutations")
                yield event
        except OSError as error:
            yield Damaged(0, f"cannot be read: {error.strerror}")
        self._progress.clear()

    def hide_progress(self) -> None:
        """The output goes to the terminal."""
        self._progress = Progress(is_shown=False)
