"""The files of snapshots in `<state directory>/snapshots`, up to three for each table.

`KEYSPACE.TABLE.json`: how far its newest snapshot is. The program that asks for the snapshot writes the first version,
the worker writes the later ones.
`KEYSPACE.TABLE.wanted`: whether it is to run, pause or be cancelled. The command writes it.
`KEYSPACE.TABLE.before`: the last one of the whole table, while the table's mark still depends on it: it has ended on
this node, maybe not yet on all others, and a newer one has begun.

`lock` is held while one that is over is replaced or marked: the publisher and the command may both do that. A
worker holds `worker-lock`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from time import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from uuid import UUID, uuid4

from cassandra_storage.formats.sstable.merge import MergePosition
from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.snapshot.state.token_selection import WHOLE, TokenSelection, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from cassandra_storage.formats.schema.tables import TableMetadata

# In this order: asked for; its begin is acknowledged; its files are there; the log is published up to the flush, and
# rows are sent; its end is acknowledged.
Phase: TypeAlias = Literal["requested", "announced", "taken", "sending", "ended", "given_up"]
PHASES: tuple[Phase, ...] = ("requested", "announced", "taken", "sending", "ended", "given_up")
FINAL: tuple[Phase, ...] = ("ended", "given_up")

Wanted: TypeAlias = Literal["run", "pause", "cancel"]
WANTED: tuple[Wanted, ...] = ("run", "pause", "cancel")

_FOLDER = "snapshots"


@dataclass(frozen=True, slots=True)
class Record:
    """The progress of a table's snapshot on this node. Times are in s since the epoch, if nothing else is said."""

    # The snapshot's id.
    snapshot: UUID
    # The table's keyspace.
    keyspace: str
    # The table's name.
    table: str
    # The table's id, in hex.
    table_id: str
    # the host ids of all nodes that the snapshot expects
    hosts: tuple[UUID, ...]
    # the tokens that it sends; stored under this name
    portion: TokenSelection = WHOLE
    # How far it is.
    phase: Phase = "requested"
    # the second at which tombstones are judged; 0 before the files are there
    now: int = 0
    # the position in the log up to which the files hold all writes
    flushed_to: tuple[int, int] = (0, 0)
    # the time of that flush
    flushed_at: float = 0.0
    # when the node had last truncated the table before that flush, in ms
    truncated_at: int = 0
    # All before it is acknowledged.
    place: MergePosition | None = None
    # the time (µs) at which the sending began or resumed last
    started: int = 0
    # acknowledged, as the next two
    rows: int = 0
    # The size of the messages sent so far.
    bytes: int = 0
    # The number of Cassandra partitions sent so far.
    partitions: int = 0
    # the share of the tokens that is acknowledged
    done: float = 0.0
    # of the SSTables that are linked
    file_bytes: int = 0
    # When it was requested.
    requested_at: float = 0.0
    # When its sending began.
    sending_at: float = 0.0
    # When its phase last changed.
    changed_at: float = 0.0
    # why it waits, or why it was given up
    problem: str = ""
    # Whether the mark that the table needs a snapshot is cleared.
    is_mark_cleared: bool = False
    # see node.own_flush; for a repair
    own_flushed_to: tuple[int, int] = (0, 0)
    # A raw partition may have its begin.
    may_be_begun: bool = False
    # All tokens up to it were sent of files before those that are there now.
    done_to: int | None = None
    # The files of now are for tokens up to it (parts.part_end); None: for all that are left.
    until: int | None = None
    # the share of its rate that it may use (busy.BusyNode)
    pace: float = 1.0
    # of SSTables that only the snapshot keeps
    pinned_bytes: int = 0
    # of a repair, by its keys, as RepairStep.replicas
    replicas: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}"

    @property
    def tag(self) -> str:
        """The tag of Cassandra's snapshot."""
        return f"cdc-{self.snapshot}"

    @property
    def reached(self) -> int | None:
        """The last token up to which something is sent; None if nothing is."""
        tokens = [self.done_to, None if self.place is None else self.place.token]
        return max((token for token in tokens if token is not None), default=None)

    @property
    def is_final(self) -> bool:
        return self.phase in FINAL

    @property
    def may_clear_mark(self) -> bool:
        """Return whether the table's mark goes when it has ended on all nodes."""
        return self.phase == "ended" and not self.portion.tokens and not self.is_mark_cleared

    def moved(self, **changes: Any) -> Record:  # noqa: ANN401 - the fields'
        """Return the record with these changes, changed now."""
        return replace(self, **{"changed_at": time(), **changes})


def new_record(
    table: TableMetadata, snapshot: UUID | None = None, hosts: tuple[UUID, ...] = (), portion: TokenSelection = WHOLE
) -> Record:
    """A snapshot that is asked for now: a new one, or this node's part of one that began elsewhere."""
    now = time()
    return Record(
        snapshot or uuid4(),
        table.keyspace,
        table.name,
        table.id.bytes.hex(),
        hosts,
        portion,
        requested_at=now,
        changed_at=now,
    )


class Records:
    """All snapshots of one publisher. Every method raises CdcError POSITION_FILE for a file that cannot be used."""

    def __init__(self, state_directory: Path) -> None:
        self.folder = state_directory / _FOLDER

    def as_worker(self, while_waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """Write as the only worker. That of a publisher which was killed may still wait for nodetool, and would replace
        what has begun since.
        """
        return state_files.exclusive(self.folder / "worker-lock", while_waiting)

    def make_folder(self) -> None:
        state_files.make_folder(self.folder)

    def all(self) -> Iterator[Record]:
        """Yield the newest record of each table, ordered by table."""
        for path in sorted(self.folder.glob("*.json")):
            record = _read(path)
            if record is not None:
                yield record

    def read(self, name: str) -> Record | None:
        """The table's newest snapshot; None if there was none."""
        return _read(self.folder / f"{name}.json")

    def write(self, record: Record) -> None:
        """Replace the table's record durably."""
        state_files.write(self.folder / f"{record.name}.json", _to_json(record))

    def begin(self, record: Record) -> bool:
        """Make a new snapshot the table's newest, unless one has begun that is not over: then False. One of a former
        table of that name is over if it is paused. CdcError if the one before is damaged.
        """
        with state_files.exclusive(self.folder / "lock"):
            before = self.read(record.name)
            if before is not None and not before.is_final:
                is_of_former = before.table_id != record.table_id
                if not is_of_former or self.wanted(record.name) != "pause":
                    return False
            if before is not None and before.may_clear_mark:
                state_files.write(self._before(record.name), _to_json(before))
            self.want(record.name, "run")
            self.write(record)
        return True

    def before(self, name: str) -> Record | None:
        """The one before the newest, if the table's mark depends on it."""
        return _read(self._before(name))

    def all_of_marks(self) -> Iterator[Record]:
        """Yield the records that `all` yields, each after its predecessor if the table's mark depends on that one."""
        for newest in self.all():
            before = self.before(newest.name)
            if before is not None:
                yield before
            yield newest

    def mark_cleared(self, record: Record) -> None:
        """The table's mark is gone. A newer snapshot may have begun since the record was read."""
        with state_files.exclusive(self.folder / "lock"):
            newest, before = self.read(record.name), self.before(record.name)
            if newest is not None and newest.snapshot == record.snapshot:
                self.write(newest.moved(is_mark_cleared=True))
            if before is not None and before.snapshot == record.snapshot:
                self._before(record.name).unlink(missing_ok=True)

    def _before(self, name: str) -> Path:
        return self.folder / f"{name}.before"

    def is_paused(self, record: Record) -> bool:
        """Return whether it is to pause, or to stay so."""
        return not record.is_final and self.wanted(record.name) == "pause"

    def wanted(self, name: str) -> Wanted:
        stored = state_files.read(self.folder / f"{name}.wanted")
        if stored is None:
            return "run"
        if stored.get("wanted") not in WANTED:
            raise _damaged(self.folder / f"{name}.wanted")
        return cast("Wanted", stored["wanted"])

    def want(self, name: str, wanted: Wanted) -> None:
        state_files.write(self.folder / f"{name}.wanted", {"wanted": wanted})


def _to_json(record: Record) -> dict[str, Any]:
    values = asdict(record)
    place = record.place
    values["snapshot"] = str(record.snapshot)
    values["hosts"] = [str(host) for host in record.hosts]
    values["place"] = None if place is None else _place_to_json(place)
    values["portion"] = str(record.portion)
    if not record.replicas or record.is_final:
        del values["replicas"]  # the version before this one refuses a name that it does not know
    return values


def _place_to_json(place: MergePosition) -> dict[str, Any]:
    clustering = None
    if place.clustering is not None:
        clustering = [None if value is None else value.hex() for value in place.clustering]
    return {"token": place.token, "key": place.key.hex(), "clustering": clustering}


def _read(path: Path) -> Record | None:
    stored = state_files.read(path)
    if stored is None:
        return None
    values = {name: value for name, value in stored.items() if name != "format_version"}
    try:
        values["snapshot"] = UUID(values["snapshot"])
        values["hosts"] = tuple(UUID(host) for host in values["hosts"])
        values["portion"] = parse(values["portion"])
        for name in ("flushed_to", "own_flushed_to"):
            segment, position = values.get(name, (0, 0))
            values[name] = int(segment), int(position)
        values["replicas"] = tuple(int(count) for count in values.get("replicas", ()))
        values["place"] = None if values["place"] is None else _place(values["place"])
        record = Record(**values)
        PHASES.index(record.phase)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path) from error
    return record


def _place(value: dict[str, Any]) -> MergePosition:
    clustering = value["clustering"]
    if clustering is not None:
        clustering = tuple(None if value is None else bytes.fromhex(value) for value in clustering)
    return MergePosition(int(value["token"]), bytes.fromhex(value["key"]), clustering)


def _damaged(path: Path) -> CdcError:
    return CdcError(
        Code.POSITION_FILE,
        f"The snapshot file {path} is damaged.",
        "Remove it: this node's part begins again. Without the filler's table, ask for it with --id, as purging waits"
        " for its end.",
    )
