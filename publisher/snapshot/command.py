"""`cassandra-publisher snapshot`: asks the publisher on this machine for a snapshot, and shows how it goes."""

from __future__ import annotations

import fcntl
import os
from time import sleep, time
from typing import TYPE_CHECKING, NamedTuple, TypedDict
from uuid import UUID

from cassandra_files.sstables import read_statistics
from cassandra_files.table_sstables import table_files
from cdc_program.cassandra import connect
from cdc_program.errors import CdcError, Code
from cdc_program.metrics import as_size, as_time
from cdc_program.terminal_progress import Progress
from publisher.schema import read_tables
from publisher.snapshot import node
from publisher.snapshot.portion import WHOLE, Portion, parse_tokens
from publisher.snapshot.records import Records, new_record
from publisher.snapshot.shown import shown, text

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cassandra_storage.schema import TableMetadata
    from cdc_program.cassandra import CassandraClient
    from cdc_program.settings import Settings
    from publisher.snapshot.records import Record, Wanted

_POLL_SECONDS = 0.5
_USUAL_RATE = 1 << 20  # bytes of messages a second from a core that others use, too


class Estimate(NamedTuple):
    """Of the SSTables that are there now. `rows`: before the merge; `bytes`: of the rows, uncompressed."""

    files: int
    file_bytes: int
    bytes: int
    partitions: int
    rows: int


class Options(TypedDict):
    """The command's. `snapshot`: the id of one that began on another node; `tokens`: as portion.parse_tokens."""

    snapshot: str | None
    tokens: tuple[str, ...]
    primary_range: bool
    detach: bool


def request_snapshot(settings: Settings, name: str, options: Options, write_line: Callable[[str], None]) -> None:
    """Ask for a snapshot, or show the one that runs, until it is over. CdcError if it cannot begin or is given up."""
    portion = portion_of(options)
    records = Records(settings.publisher.state_directory)
    running = records.read(name)
    if running is not None and not running.is_final and portion not in (WHOLE, running.portion):
        raise CdcError(
            Code.CONFIG_INVALID,
            f"A snapshot of another part of {name} is running on this node: {running.portion or 'all tokens'}.",
            "Wait until it has ended, or give it up with --cancel.",
        )
    if running is None or running.is_final:
        with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
            table = _find_table(client, name)
            hosts = tuple(node.datacenter_hosts(client))
            estimate = estimate_table(table, node.data_directories(client, settings.publisher))
        _check_publisher_runs(settings.publisher.state_directory)
        record = new_record(table, _as_id(options["snapshot"]), hosts, portion)
        for line in preflight(record, estimate, settings.publisher.snapshot_max_mib_per_second):
            write_line(line)
        records.make_folder()
        records.want(name, "run")
        records.write(record)
    else:
        _check_publisher_runs(settings.publisher.state_directory)
        if records.wanted(name) == "pause":
            records.want(name, "run")
    if not options["detach"]:
        _follow(records, name, write_line)


def portion_of(options: Options) -> Portion:
    """What they ask for; CdcError CONFIG_INVALID."""
    try:
        return Portion(parse_tokens(options["tokens"]), options["primary_range"])
    except ValueError as error:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"{error}.",
            "Give --tokens as cqlsh shows them: SELECT token(KEY) FROM KEYSPACE.TABLE WHERE ...",
        ) from error


def want(settings: Settings, name: str, wanted: Wanted, write_line: Callable[[str], None]) -> None:
    """Pause, resume or cancel the snapshot that runs; CdcError CONFIG_INVALID if none does."""
    records = Records(settings.publisher.state_directory)
    record = records.read(name)
    if record is None or record.is_final:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"No snapshot of {name} is running on this node.",
            "See cassandra-publisher status; cassandra-publisher snapshot begins one.",
        )
    records.want(name, wanted)
    write_line(f"asked the publisher: {wanted}")


def estimate_table(table: TableMetadata, data_directories: list[Path]) -> Estimate:
    """CdcError as data_directories; FormatError or UnsupportedError for SSTables that cannot be read."""
    files = table_files(data_directories, table)
    stats = [read_statistics(file).stats for file in files]
    sizes = [file.data_path.stat().st_size for file in files]
    ratios = [each.compression_ratio if 0 < each.compression_ratio <= 1 else 1.0 for each in stats]
    return Estimate(
        len(files),
        sum(sizes),
        round(sum(size / ratio for size, ratio in zip(sizes, ratios, strict=True))),
        sum(each.partitions for each in stats),
        sum(each.rows for each in stats),
    )


def preflight(record: Record, estimate: Estimate, max_mib_per_second: float) -> list[str]:
    """What will be sent, what it will take, and what to do before."""
    rate = min(max_mib_per_second * (1 << 20) or _USUAL_RATE, _USUAL_RATE)
    sent = 4 * estimate.bytes  # each row travels with its own header
    others = len(record.hosts) - 1
    stored = f"{estimate.files} SSTables without what a flush adds, {as_size(estimate.file_bytes)} on disk"
    most = f"up to {estimate.partitions:,} partitions and {estimate.rows:,} rows before they are merged"
    what = "every row, static row and deletion that this node stores and owns, merged"
    if record.portion.is_primary:
        what += ", of ranges of which it is the primary replica in its datacenter"
    if record.portion.tokens:
        tokens = ", ".join(f"{first} to {last}" for first, last in record.portion.tokens)
        what += f", of the tokens {tokens} only (the figures are those of all tokens)"
    duration = f"about {as_size(sent)} before compression, at {as_size(rate)}/s in {as_time(sent / rate)}"
    lines = [
        f"snapshot {record.snapshot} of {record.name}",
        f"  on this node  {stored}; {most}",
        f"  sends         {what}; {duration}",
        "  keeps         hard links of the SSTables on disk, and all tombstones in the materializer, until it ends",
        "  as exact as   this node's replica: run nodetool repair on the table first, if replicas may differ",
    ]
    if others:
        lines.append(
            f"  other nodes   the publishers of {others} more in this datacenter take part within a minute; where one"
            f" does not, run there cassandra-publisher snapshot {record.name} --id {record.snapshot}"
        )
    return lines


def _find_table(client: CassandraClient, name: str) -> TableMetadata:
    for table in read_tables(client.rows).values():
        if table.qualified_name == name:
            if not table.cdc:
                raise CdcError(
                    Code.TABLE_NOT_PUBLISHED,
                    f"{name} has cdc = false: what is written while it is read would be lost.",
                    f"ALTER TABLE {name} WITH cdc = true, and ask again.",
                )
            return table
    raise CdcError(Code.CONFIG_INVALID, f"The node has no table {name}.", "Name it KEYSPACE.TABLE, without quotes.")


def _as_id(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError as error:
        raise CdcError(
            Code.CONFIG_INVALID, f"{text!r} is not the id of a snapshot.", "Take it from the node where it began."
        ) from error


def _check_publisher_runs(state_directory: Path) -> None:
    """CdcError PROGRAM_UNREACHABLE if no publisher holds the lock of this state directory."""
    try:
        handle = os.open(state_directory / "lock", os.O_RDWR)
    except OSError:
        handle = -1
    if handle >= 0:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            os.close(handle)
    raise CdcError(
        Code.PROGRAM_UNREACHABLE,
        f"No publisher runs with the state directory {state_directory}.",
        "Start it, and run this command as its user and with its settings: the publisher takes the snapshot.",
    )


def _follow(records: Records, name: str, write_line: Callable[[str], None]) -> None:
    progress = Progress()
    last = ""
    while True:
        record = records.read(name)
        assert record is not None
        if record.is_final:
            break
        if record.phase != last:
            progress.clear()
            write_line(text(shown(record, time())))
            last = record.phase
        progress.show(text(shown(record, time())))
        sleep(_POLL_SECONDS)
    progress.clear()
    if record.phase == "given_up":
        raise CdcError(
            Code.SNAPSHOT_GIVEN_UP,
            f"The snapshot of {name} was given up: {record.problem}.",
            "Remove the cause, and start a new one: rows that were sent are sent again, which does no harm.",
        )
    write_line(text(shown(record, time())))
