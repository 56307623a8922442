"""The console script cassandra-commitlog: it inspects commit log segments without any server."""

from __future__ import annotations

import signal
import sys

import click

from cassandra_storage.commands.commitlog.dump import Bound, Filter, mutation_json
from cassandra_storage.commands.commitlog.mutations import Damaged, Undecoded
from cassandra_storage.commands.commitlog.options import SegmentInput, parse_bound, segment_options
from cassandra_storage.commands.commitlog.report import info_text
from cassandra_storage.commands.commitlog.segments import SegmentEnd, SegmentWalk
from cassandra_storage.commands.commitlog.summary import SegmentSummary, summary_json
from cassandra_storage.commands.json_lines import json_line

PROBLEMS_FOUND = 1  # exit status; click exits with 2 for an invalid command line


def main() -> None:
    """The console script. A closed pipe (`| head`) ends it silently, like cat and grep."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    group()


@click.group("cassandra-commitlog")
@click.version_option(package_name="cassandra-cdc-materializer", prog_name="cassandra-commitlog")
def group() -> None:
    """Inspects commit log segments of Cassandra 3.0 to 5.0, without any server.

    PATH is a segment (CommitLog-<version>-<id>.log) or a directory of segments: cdc_raw, commitlog, or a copy. Table
    schemas come from --schema, and from each CREATE TABLE in the segments.
    """


@group.command("info")
@segment_options
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each segment.")
def info(segments: SegmentInput, *, as_json: bool) -> None:
    """Summarizes each segment.

    It prints version, state, sections, mutations and bytes of each table, and how the segment ends.

    Example: cassandra-commitlog info docs/example-segment
    """
    for walk in segments.walks():
        summary = SegmentSummary()
        for event in segments.events(walk):
            summary.add(event)
        shown = summary_json(walk, summary)
        click.echo(json_line(shown) if as_json else info_text(shown), nl=not as_json)


@group.command("dump")
@segment_options
@click.option("--table", "names", metavar="KEYSPACE.TABLE", multiple=True, help="Only this table; may be repeated.")
@click.option(
    "--key",
    metavar="KEY",
    help="Only this partition key: its values, separated by colons, or 0x and its bytes.",
)
@click.option(
    "--from", "from_", metavar="POSITION", callback=parse_bound, help="Only from [<segment id>:]<position> on."
)
@click.option("--to", metavar="POSITION", callback=parse_bound, help="Only up to this position, inclusive.")
@click.option("--values", "with_values", is_flag=True, help="Show values. By default only their lengths are shown.")
def dump(  # noqa: PLR0913  one for each option
    segments: SegmentInput,
    *,
    names: tuple[str, ...],
    key: str | None,
    from_: Bound | None,
    to: Bound | None,
    with_values: bool,
) -> None:
    """Prints mutations as JSON lines, in Cassandra's terms. Reports damage and omissions on stderr.

    Exit status: 1 if a segment is damaged.

    Example: cassandra-commitlog dump docs/example-segment --schema docs/example-segment/schema.json --values
    """
    chosen = Filter(frozenset(names), key, from_, to)
    out = sys.stdout.buffer
    if sys.stdout.isatty():
        segments.hide_progress()
    unknown = problems = printed = 0
    for walk in segments.walks():
        for event in segments.events(walk):
            if isinstance(event, Damaged):
                problems += 1
                click.echo(_problem(walk, event.position, event.reason), err=True)
                continue
            unknown += isinstance(event, Undecoded)
            shown = mutation_json(walk.file, event, chosen, with_values=with_values)
            if shown is not None:
                printed += 1
                out.write(json_line(shown))
    out.flush()
    if (names or key is not None) and not printed:
        of = f" of {', '.join(names)}" if names else ""
        with_key = "" if key is None else f" with the key {key}"
        click.echo(f"no mutation{of}{with_key}; cassandra-commitlog info lists the tables", err=True)
    if unknown:
        click.echo(f"{unknown} mutations of unknown tables or columns: use --schema", err=True)
    if problems:
        sys.exit(PROBLEMS_FOUND)


@group.command("verify")
@segment_options
def verify(segments: SegmentInput) -> None:
    """Verifies all checksums and mutations, and reports problems.

    A torn tail of the newest segment is not a problem: a running or killed node leaves one. Mutations of unknown tables
    are counted, and are not problems either.

    Exit status: 1 if there are problems.

    Example: cassandra-commitlog verify docs/example-segment
    """
    decoded = unknown = problems = 0
    for walk in segments.walks():
        if walk.index_problem is not None:
            problems += 1
            click.echo(f"{walk.index_path}:0: {walk.index_problem}")
        for event in segments.events(walk):
            if isinstance(event, Damaged):
                problems += 1
                click.echo(_problem(walk, event.position, event.reason))
            elif isinstance(event, Undecoded):
                unknown += 1
            else:
                decoded += 1
        if walk.ending is SegmentEnd.TORN:
            click.echo(f"note: {_problem(walk, walk.end_position, 'torn tail: truncated, or not written yet')}")
        elif walk.ending is not SegmentEnd.CORRUPT and walk.unsynced_position is not None:
            click.echo(f"note: {_problem(walk, walk.unsynced_position, 'bytes after the end: written and not synced')}")
    click.echo(
        f"{len(segments.files)} segments, {decoded} mutations decoded, {unknown} of unknown tables or columns,"
        f" {problems} problems"
    )
    if problems:
        sys.exit(PROBLEMS_FOUND)


def _problem(walk: SegmentWalk, position: int, reason: str) -> str:
    return f"{walk.file.path}:{position}: {reason}"
