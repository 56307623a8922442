"""The console script cassandra-commitlog: looks into commit log segments without any server."""

from __future__ import annotations

import signal
import sys

import click

from cassandra_commitlog.dump import Bound, Filter, line, mutation_json
from cassandra_commitlog.facts import SegmentFacts, facts_json
from cassandra_commitlog.mutations import Damaged, Undecoded
from cassandra_commitlog.options import Reading, parse_bound, takes_reading
from cassandra_commitlog.report import info_text
from cassandra_commitlog.segments import Ending, SegmentWalk

PROBLEMS_FOUND = 1  # exit status; 2 is click's, of a command line that is wrong


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


@group.command("info")
@takes_reading
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each segment, on a line.")
def info(reading: Reading, *, as_json: bool) -> None:
    """What is in each segment: version, state, sections, mutations and bytes of each table, how it ends."""
    for walk in reading.walks():
        facts = SegmentFacts()
        for event in reading.events(walk):
            facts.add(event)
        shown = facts_json(walk, facts)
        click.echo(line(shown) if as_json else info_text(shown), nl=not as_json)


@group.command("dump")
@takes_reading
@click.option("--table", "names", metavar="KEYSPACE.TABLE", multiple=True, help="Only this table; may be repeated.")
@click.option("--key", metavar="KEY", help="Only this partition: its key's values, colons between, or 0x and bytes.")
@click.option("--from", "from_", metavar="POSITION", callback=parse_bound, help="From [<segment id>:]<position> on.")
@click.option("--to", metavar="POSITION", callback=parse_bound, help="Up to there, inclusive.")
@click.option("--values", "with_values", is_flag=True, help="Show values; without it, only their lengths.")
def dump(  # noqa: PLR0913  one for each option
    reading: Reading,
    *,
    names: tuple[str, ...],
    key: str | None,
    from_: Bound | None,
    to: Bound | None,
    with_values: bool,
) -> None:
    """Mutations as JSON lines, in Cassandra's own terms; damage and what is left out go to stderr."""
    chosen = Filter(frozenset(names), key, from_, to)
    out = sys.stdout.buffer
    if sys.stdout.isatty():
        reading.hide_progress()
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
@takes_reading
def verify(reading: Reading) -> None:
    """Reads all, checksums and mutations, and reports what is wrong. Exit status: 0 if nothing is, 1 if something is.

    A torn tail of the newest segment, as a node that lives or was killed leaves it, is not wrong; nor are mutations of
    unknown tables, which are counted.
    """
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
        f"{len(reading.segments)} segments, {decoded} mutations decoded, {unknown} of tables or columns not known,"
        f" {problems} problems"
    )
    if problems:
        sys.exit(PROBLEMS_FOUND)


def _problem(walk: SegmentWalk, position: int, reason: str) -> str:
    return f"{walk.file.path}:{position}: {reason}"
