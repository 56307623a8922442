"""The console script cassandra-commitlog: looks into commit log segments without any server."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cassandra_commitlog.dump import Bound, Filter, line, mutation_json
from cassandra_commitlog.facts import SegmentFacts, facts_json
from cassandra_commitlog.mutations import Damaged, MutationReader, Undecoded
from cassandra_commitlog.progress import Progress
from cassandra_commitlog.report import info_text
from cassandra_commitlog.schemas import Schemas, read_schema_file
from cassandra_commitlog.segments import Ending, SegmentFile, SegmentWalk, find_segments
from cassandra_storage.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cassandra_commitlog.mutations import Event
    from cassandra_storage.schema import TableMetadata

PROBLEMS_FOUND = 1  # exit status; 2 is click's, of a command line that is wrong

_Command = TypeVar("_Command", bound=Callable[..., Any])
_BOUND = re.compile(r"(?:(\d{1,18}):)?(\d{1,10})")


def main() -> None:
    """The console script. A pipe that is closed (`| head`) ends it silently, as it ends cat and grep."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    group()


@click.group("cassandra-commitlog")
@click.version_option(package_name="cassandra-cdc-materializer", prog_name="cassandra-commitlog")
def group() -> None:
    """Looks into Cassandra's commit log segments, of 3.0 to 5.0, without any server.

    PATH is a segment (CommitLog-<version>-<id>.log) or a folder of them: cdc_raw, commitlog, or a copy. Tables are
    known from --schema, and from each CREATE TABLE that is in the segments given.
    """


def _segments(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> list[SegmentFile]:
    try:
        found = find_segments(paths)
    except FormatError as error:
        raise click.BadParameter(str(error)) from None
    if not found:
        raise click.BadParameter("there is no commit log segment (CommitLog-<version>-<id>.log)")
    return found


def _tables(_context: click.Context, _parameter: click.Parameter, paths: tuple[Path, ...]) -> list[TableMetadata]:
    tables = []
    for path in paths:
        try:
            tables += read_schema_file(path)
        except (OSError, ValueError) as error:
            raise click.BadParameter(f"{path}: {error}") from None
    return tables


def _bound(_context: click.Context, _parameter: click.Parameter, text: str | None) -> Bound | None:
    if text is None:
        return None
    match = _BOUND.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} is neither a position nor <segment id>:<position>")
    return Bound(int(match[2]), None if match[1] is None else int(match[1]))


def _common(command: _Command) -> _Command:
    """The parameters of every command."""
    path = click.Path(exists=True, path_type=Path)
    schema = click.option(
        "--schema",
        "tables",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="FILE",
        multiple=True,
        callback=_tables,
        help="A publisher's schema.json, or messages of <prefix>.tables, one a line; may be repeated.",
    )
    return click.argument("segments", type=path, nargs=-1, required=True, metavar="PATH...", callback=_segments)(
        schema(command)
    )


class _Reading:
    """All that a command reads, segment by segment."""

    def __init__(self, segments: list[SegmentFile], tables: list[TableMetadata], progress: Progress) -> None:
        self._segments = segments
        self._reader = MutationReader(Schemas(tables))
        self._progress = progress
        self._number = 0
        self._mutations = 0

    def walks(self) -> Iterator[SegmentWalk]:
        for file in self._segments:
            self._number += 1
            yield SegmentWalk(file)

    def events(self, walk: SegmentWalk) -> Iterator[Event]:
        try:
            for event in self._reader.events(walk):
                self._mutations += 1
                self._progress.at(self._number, self._mutations)
                yield event
        except OSError as error:
            yield Damaged(0, f"cannot be read: {error.strerror}")
        self._progress.clear()


@group.command("info")
@_common
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each segment, on a line.")
def info(segments: list[SegmentFile], tables: list[TableMetadata], *, as_json: bool) -> None:
    """What is in each segment: version, state, sections, mutations and bytes of each table, how it ends."""
    reading = _Reading(segments, tables, Progress(len(segments)))
    for walk in reading.walks():
        facts = SegmentFacts()
        for event in reading.events(walk):
            facts.add(event)
        shown = facts_json(walk, facts)
        click.echo(line(shown) if as_json else info_text(shown), nl=not as_json)


@group.command("dump")
@_common
@click.option("--table", "names", metavar="KEYSPACE.TABLE", multiple=True, help="Only this table; may be repeated.")
@click.option("--key", metavar="KEY", help="Only this partition: its key's values, colons between, or 0x and bytes.")
@click.option("--from", "from_", metavar="POSITION", callback=_bound, help="From there on: [<segment id>:]<position>.")
@click.option("--to", metavar="POSITION", callback=_bound, help="Up to there, inclusive.")
@click.option("--values", "with_values", is_flag=True, help="Show values; without it, only their lengths.")
def dump(  # noqa: PLR0913  one for each option
    *,
    segments: list[SegmentFile],
    tables: list[TableMetadata],
    names: tuple[str, ...],
    key: str | None,
    from_: Bound | None,
    to: Bound | None,
    with_values: bool,
) -> None:
    """Mutations as JSON lines, in Cassandra's own terms; damage and what is left out go to stderr."""
    chosen = Filter(frozenset(names), key, from_, to)
    out = sys.stdout.buffer
    reading = _Reading(segments, tables, Progress(len(segments), is_shown=not sys.stdout.isatty()))
    unknown = problems = 0
    for walk in reading.walks():
        for event in reading.events(walk):
            if isinstance(event, Damaged):
                problems += 1
                click.echo(_problem(walk, event.position, event.reason), err=True)
                continue
            unknown += isinstance(event, Undecoded)
            shown = mutation_json(walk.file, event, chosen, with_values=with_values)
            if shown is not None:
                out.write(line(shown))
    out.flush()
    if unknown:
        click.echo(f"{unknown} mutations of tables or columns that are not known: give --schema", err=True)
    if problems:
        sys.exit(PROBLEMS_FOUND)


@group.command("verify")
@_common
def verify(segments: list[SegmentFile], tables: list[TableMetadata]) -> None:
    """Reads all, checksums and mutations, and reports what is wrong. Exit status: 0 if nothing is, 1 if something is.

    A torn tail of the newest segment, as a node that lives or was killed leaves it, is not wrong; nor are mutations of
    unknown tables, which are counted.
    """
    reading = _Reading(segments, tables, Progress(len(segments)))
    decoded = unknown = problems = 0
    for walk in reading.walks():
        if walk.index_problem is not None:
            problems += 1
            click.echo(f"{walk.index_path}:0: {walk.index_problem}")
        for event in reading.events(walk):
            if isinstance(event, Damaged):
                problems += 1
                click.echo(_problem(walk, event.position, event.reason))
            elif isinstance(event, Undecoded):
                unknown += 1
            else:
                decoded += 1
        if walk.ending is Ending.TORN:
            click.echo(f"note: {_problem(walk, walk.end_position, 'torn tail: cut off, or not written yet')}")
        elif walk.ending is not Ending.CORRUPT and walk.stray is not None:
            click.echo(f"note: {_problem(walk, walk.stray, 'bytes behind the end: written and not synced')}")
    click.echo(
        f"{len(segments)} segments, {decoded} mutations decoded, {unknown} of tables or columns not known,"
        f" {problems} problems"
    )
    if problems:
        sys.exit(PROBLEMS_FOUND)


def _problem(walk: SegmentWalk, position: int, reason: str) -> str:
    return f"{walk.file.path}:{position}: {reason}"
