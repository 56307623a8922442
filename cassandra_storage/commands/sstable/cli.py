"""The console script cassandra-sstable: it inspects SSTables without any server."""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from cassandra_storage.commands.json_lines import json_line
from cassandra_storage.commands.sstable.dump import Filter, merged_lines, sstable_lines
from cassandra_storage.commands.sstable.options import SSTableInput, sstable_options
from cassandra_storage.commands.sstable.report import info_json, info_text
from cassandra_storage.commands.sstable.verify import Checked, check_order
from cassandra_storage.files.sstables import verify_digest
from cassandra_storage.files.table_sstables import DamagedTableError
from cassandra_storage.formats.errors import FormatError

if TYPE_CHECKING:
    from cassandra_storage.files.sstables import SSTableFile

PROBLEMS_FOUND = 1  # exit status; click exits with 2 for an invalid command line


def main() -> None:
    """The console script. A closed pipe (`| head`) ends it silently, like cat and grep."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    group()


@click.group("cassandra-sstable")
@click.version_option(package_name="cassandra-cdc-materializer", prog_name="cassandra-sstable")
def group() -> None:
    """Inspects SSTables of Cassandra 3.0 to 5.0, without any server.

    PATH is an SSTable (<version>-<id>-<format>-Data.db) or a directory: of a table, a keyspace, a node's data, or a
    snapshot. Indexes, backups and snapshots under a directory are left out. Take a snapshot of a running node first: it
    removes SSTables at any time.
    """


@group.command("info")
@sstable_options
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON for each SSTable.")
def info(sstables: SSTableInput, *, as_json: bool) -> None:
    """Prints the metadata of each SSTable.

    It has version, compression, times, repair and columns. The data is not read.

    Exit status: 1 if an SSTable cannot be read.

    Example: cassandra-sstable info /var/lib/cassandra/data/shop
    """
    problems = 0
    for file in sstables.files:
        try:
            with sstables.open(file) as sstable:
                shown = info_json(sstable)
        except (FormatError, OSError) as error:
            problems += 1
            click.echo(_problem(file, error), err=True)
            continue
        click.echo(json_line(shown) if as_json else info_text(shown), nl=not as_json)
    if problems:
        sys.exit(PROBLEMS_FOUND)


_key_option = click.option(
    "--key",
    metavar="KEY",
    help="Only this partition key: its values, separated by colons, or 0x and its bytes.",
)
_values_option = click.option(
    "--values", "with_values", is_flag=True, help="Show values. By default only their lengths are shown."
)


@group.command("dump")
@sstable_options
@_key_option
@_values_option
def dump(sstables: SSTableInput, *, key: str | None, with_values: bool) -> None:
    """Prints the contents as JSON lines, in Cassandra's terms.

    They are partitions, rows and range tombstone markers. Damage is reported on stderr; the rest of that SSTable is not
    printed.

    Exit status: 1 if an SSTable is damaged.

    Example: cassandra-sstable dump /var/lib/cassandra/data/shop --key 42 --values
    """
    out = sys.stdout.buffer
    if sys.stdout.isatty():
        sstables.hide_progress()
    problems = printed = 0
    for file in sstables.files:
        try:
            with sstables.open(file) as sstable:
                for line in sstable_lines(sstable, Filter(key), with_values=with_values):
                    sstables.step(sstable)
                    printed += 1
                    out.write(json_line(line))
        except (FormatError, OSError) as error:
            problems += 1
            out.flush()
            sstables.clear_progress()
            click.echo(_problem(file, error), err=True)
    out.flush()
    sstables.clear_progress()
    _say_if_no_key(key, printed)
    if problems:
        sys.exit(PROBLEMS_FOUND)


@group.command("merge")
@sstable_options
@_key_option
@_values_option
def merge(sstables: SSTableInput, *, key: str | None, with_values: bool) -> None:
    """Prints what a compaction of all the SSTables would leave.

    The output is table by table, as JSON lines like dump's. Each partition comes once, in the order of tokens. Data
    shadowed by a deletion are left out, and so are tombstones older than the table's gc_grace_seconds and cells of
    dropped columns. Name the table's folders in all data directories of the node, or a row may lack its deletion. The
    table must be known: see --schema and --data. Damage is reported on stderr; the rest of that table is not printed.

    Exit status: 1 if an SSTable is damaged.

    Example: cassandra-sstable merge /data1/shop /data2/shop --schema schema.cql
    """
    out = sys.stdout.buffer
    if sys.stdout.isatty():
        sstables.hide_progress()
    try:
        tables = sstables.tables()
    except (FormatError, DamagedTableError, OSError) as error:
        raise click.ClickException(str(error)) from None
    problems = printed = 0
    for table in tables:
        try:
            for line in merged_lines(table, table.purger(int(time.time())), Filter(key), with_values=with_values):
                sstables.step_merged(table)
                printed += 1
                out.write(json_line(line))
        except (FormatError, DamagedTableError, OSError) as error:
            problems += 1
            out.flush()
            sstables.clear_progress()
            click.echo(str(error), err=True)
    out.flush()
    sstables.clear_progress()
    _say_if_no_key(key, printed)
    if problems:
        sys.exit(PROBLEMS_FOUND)


def _say_if_no_key(key: str | None, printed: int) -> None:
    if key is not None and not printed:
        click.echo(f"no partition with the key {key}", err=True)


@group.command("verify")
@sstable_options
def verify(sstables: SSTableInput) -> None:
    """Verifies all checksums, reads all rows and checks their order.

    Exit status: 1 if there are problems.

    Example: cassandra-sstable verify /var/lib/cassandra/data/shop
    """
    total = Checked()
    problems = 0
    for file in sstables.files:
        try:
            verify_digest(file)
            with sstables.open(file) as sstable:
                for _ in check_order(sstable, total):
                    sstables.step(sstable)
                if not sstable.data.has_checksums:
                    sstables.clear_progress()
                    click.echo(f"note: {file.data_path}: it has no checksums (no CRC.db)")
        except (FormatError, OSError) as error:
            problems += 1
            sstables.clear_progress()
            click.echo(_problem(file, error))
    sstables.clear_progress()
    click.echo(
        f"{len(sstables.files)} SSTables, {total.partitions} partitions, {total.rows} rows, {total.markers} range"
        f" tombstone markers, {problems} problems"
    )
    if problems:
        sys.exit(PROBLEMS_FOUND)


def _problem(file: SSTableFile, error: FormatError | OSError) -> str:
    """FILE:POSITION: reason. Positions in rows are those of the uncompressed data."""
    if isinstance(error, OSError):
        return f"{error.filename or file.data_path}: cannot be read: {error.strerror}"
    path = file.data_path if error.segment is None else file.folder / error.segment
    place = "" if error.position is None else f"{error.position}:"
    return f"{path}:{place} {error.reason}"
