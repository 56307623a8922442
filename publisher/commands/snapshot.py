"""`cassandra-publisher snapshot`: asks the publisher on this machine for a snapshot, and shows how it goes."""

from __future__ import annotations

import fcntl
import os
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, TypedDict
from uuid import UUID

from cassandra_storage.commands.terminal_progress import Progress
from cdc_common.clients.cassandra import connect
from cdc_common.errors.codes import CdcError, Code
from cdc_common.node.snapshot_rows import datacenter_hosts
from publisher.snapshot.connections import node
from publisher.snapshot.state.estimate import estimate_table, preflight
from publisher.snapshot.state.records import Records, new_record
from publisher.snapshot.state.shown import shown, text
from publisher.snapshot.state.token_selection import WHOLE, TokenSelection, parse_tokens
from publisher.tables.system_schema import read_tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata
    from cdc_common.clients.cassandra import CassandraClient
    from publisher.settings import Settings
    from publisher.snapshot.state.records import Record, Wanted

_POLL_SECONDS = 0.5
_RESTART_SECONDS = 15.0  # in which systemd, which waits for 5 s, brings a killed publisher back
_DOES: dict[Wanted, str] = {"run": "resume", "pause": "pause", "cancel": "give up"}


class Options(TypedDict):
    """The options of the command."""

    # the id of a snapshot that began on another node
    snapshot: str | None
    # as token_selection.parse_tokens
    tokens: tuple[str, ...]
    # Whether each node sends only the rows of its primary range.
    primary_range: bool
    # Whether the command returns once the snapshot is requested.
    detach: bool


def request_snapshot(settings: Settings, name: str, options: Options, write_line: Callable[[str], None]) -> None:
    """Ask for a snapshot, or show the one that runs, until it is over. CdcError if it cannot begin or is given up."""
    portion = portion_of(options)
    records = Records(settings.publisher.state_directory)
    running = records.read(name)
    _check_running(running, portion)
    if running is not None and running.is_final and running.snapshot == _as_id(options["snapshot"]):
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The snapshot {running.snapshot} is over on this node: purging would not wait for it again.",
            "Ask without --id: a new snapshot sends all rows again, which does no harm.",
        )
    if running is None or running.is_final:
        with connect(settings.cassandra, only=settings.cassandra.contact_points[0]) as client:
            table = _find_table(client, name)
            hosts = tuple(datacenter_hosts(client))
            estimate = estimate_table(table, node.data_directories(client, settings.publisher))
        _check_publisher_runs(settings.publisher.state_directory)
        record = new_record(table, _as_id(options["snapshot"]), hosts, portion)
        for line in preflight(record, estimate, settings.publisher.snapshot_max_mib_per_second):
            write_line(line)
        records.make_folder()
        if not records.begin(record):  # the publisher takes part in one that another node has begun since
            _check_running(records.read(name), portion)
    else:
        _check_publisher_runs(settings.publisher.state_directory)
    if not options["detach"]:
        _follow(records, name, write_line)


def _check_running(running: Record | None, portion: TokenSelection) -> None:
    """Raise CdcError CONFIG_INVALID if what runs is not what is asked for."""
    if running is None or running.is_final:
        return
    if running.portion.repair is not None:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"A repair of {len(running.portion.repair.keys)} Cassandra partitions of {running.name} is running on this"
            " node.",
            "Wait until cassandra-publisher status shows that it has ended.",
        )
    if portion not in (WHOLE, running.portion):
        raise CdcError(
            Code.CONFIG_INVALID,
            f"A snapshot of another part of {running.name} is running on this node: {running.portion or 'all tokens'}.",
            "Wait until it has ended, or give it up with --cancel.",
        )


def portion_of(options: Options) -> TokenSelection:
    """Return the tokens that the options select. CdcError CONFIG_INVALID."""
    try:
        return TokenSelection(parse_tokens(options["tokens"]), options["primary_range"])
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
    write_line(f"The publisher will {_DOES[wanted]} the snapshot of {name}.")


def _find_table(client: CassandraClient, name: str) -> TableMetadata:
    read = read_tables(client.rows)
    for unreadable in read.unreadable.values():
        if unreadable.qualified_name == name:
            raise CdcError(
                Code.TABLE_NOT_PUBLISHED,
                f"{name} cannot be read: {unreadable.reason}.",
                "The error reference says what this build reads: cassandra-publisher explain CDC-063.",
            )
    for table in read.tables.values():
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
    """Raise CdcError PROGRAM_UNREACHABLE if no publisher holds the lock of this state directory. One that was just
    killed gets _RESTART_SECONDS to come back: it then takes the snapshot.
    """
    deadline = monotonic() + _RESTART_SECONDS
    while not _is_locked(state_directory / "lock"):
        if monotonic() >= deadline:
            raise CdcError(
                Code.PROGRAM_UNREACHABLE,
                f"No publisher runs with the state directory {state_directory}.",
                "Start it, and run this command as its user and with its settings: the publisher takes the snapshot.",
            )
        sleep(_POLL_SECONDS)


def _is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    try:
        handle = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _follow(records: Records, name: str, write_line: Callable[[str], None]) -> None:
    progress = Progress()
    last: tuple[str, bool] | None = None
    while True:
        record = records.read(name)
        assert record is not None
        if record.is_final:
            break
        now = shown(record, time(), is_paused=records.is_paused(record))
        if (now.state, now.is_paused) != last:
            progress.clear()
            write_line(text(now))
            last = now.state, now.is_paused
        progress.show(text(now))
        sleep(_POLL_SECONDS)
    progress.clear()
    if record.phase == "given_up":
        raise CdcError(
            Code.SNAPSHOT_GIVEN_UP,
            f"The snapshot of {name} was given up: {record.problem}.",
            "Remove the cause, and start a new one: rows that were sent are sent again, which does no harm.",
        )
    write_line(text(shown(record, time())))
