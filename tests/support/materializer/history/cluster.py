"""Two hosts that log a history's statements under the schema that each knows, and what their publishers send."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from cassandra_storage.formats.schema.tables import TableMetadata
from materializer.records import RawRecord
from tests.support.materializer.history.plain_table import PlainTable
from tests.support.materializer.history.statements import KEYS, Stamp, Statement, Statements
from tests.support.materializer.history.steps import HOSTS, Delete, Origin, Snapshot, Write
from tests.support.materializer.history.table_versions import GC_GRACE_SECONDS, TableVersions, writer_of
from tests.support.materializer.raw_builder import as_image, raw_record, snapshot_step

if TYPE_CHECKING:
    from cdc_common.messages.snapshots import HostState
    from tests.support.materializer.history.plain_table import Clustering, Image
    from tests.support.materializer.history.steps import Skew

BASE_MS = 1_700_000_000_000
_SKEWS = {"tie": 0, "past": -2, "future": 3}  # s from the whole second


class _Mutation(NamedTuple):
    """The place where a statement is logged, and under which schema."""

    partition_key: bytes
    position: int
    part: int
    table: TableMetadata
    hosts: tuple[int, ...]
    stamp: Stamp


class _Logged(NamedTuple):
    """A raw message that a host has not sent yet."""

    made_ms: int
    record: RawRecord
    table: TableMetadata
    statement: Statement
    timestamp: int


class Cluster:
    """Makes the records of each step; `plain` has by table id what the raw topic holds of each table."""

    def __init__(self, shape: int) -> None:
        self.now_ms = BASE_MS + 500
        self.versions = TableVersions()
        self.versions.create(shape, self.now_us)
        self.plain: defaultdict[bytes, PlainTable] = defaultdict(PlainTable)
        self._statements: defaultdict[bytes, Statements] = defaultdict(Statements)
        self._unsent: list[_Logged] = []
        self._logged: list[_Logged] = []
        self._images: list[_Logged] | None = None  # what a running snapshot has not sent yet
        self._snapshots = 0
        self._mutation: _Mutation | None = None
        self._position = 0
        self._rising = 0

    @property
    def now_us(self) -> int:
        return self.now_ms * 1000

    def visible(self, partition_key: bytes, now: int) -> dict[Clustering | None, Image]:
        """Return the rows of the raw topic's writes that `SELECT` shows at a second."""
        versions = self.versions
        plain = self.plain[versions.newest.id.bytes]
        return plain.rows(partition_key, now, versions.columns(), versions.dropped())

    @property
    def is_young(self) -> bool:
        """Nothing can have been purged yet, and the table is the first of its name."""
        ids = {table.id for table in self.versions.tables}
        return len(ids) == 1 and self.now_ms // 1000 <= BASE_MS // 1000 + GC_GRACE_SECONDS

    @property
    def expiry_seconds(self) -> set[int]:
        return self.plain[self.versions.newest.id.bytes].expiry_seconds

    def log(self, step: Write | Delete) -> list[RawRecord]:
        """A statement: the records that are sent at once, of the first host."""
        mutation = self._next_mutation(KEYS[step.p], step.origin)
        statements, table = self._statements[mutation.table.id.bytes], mutation.table
        if isinstance(step, Write):
            statement = statements.write(table, step, mutation.stamp)
        else:
            statement = statements.delete(table, step, mutation.stamp)
        if statement is None:
            return []
        self._mutation = mutation
        records = []
        for host in mutation.hosts:
            known = self._schema_of(host, mutation, statement)
            record = raw_record(
                mutation.partition_key,
                statement.kind,
                statement.content,
                offset=mutation.position,
                index=mutation.part,
                timestamp_ms=self.now_ms,
                host=host,
                writer=writer_of(known),
            )
            logged = _Logged(self.now_ms, record, known, statement, mutation.stamp.timestamp)
            self._logged.append(logged)
            if host == HOSTS[0]:
                records.append(self._send(logged))
            else:
                self._unsent.append(logged)
        return records

    def hand_over(self) -> list[RawRecord]:
        unsent, self._unsent = self._unsent, []
        return [self._send(logged) for logged in unsent]

    def snapshot(self, step: Snapshot) -> list[RawRecord]:
        """The records of a step of a snapshot; none for a step that has no place now."""
        if step.what == "begin" and self._images is None and not self.versions.newest.is_counter:
            return self._begin_snapshot()
        if self._images is None:
            return []
        return self._send_images(step.images) if step.what == "send" else self.end_snapshot()

    def end_snapshot(self) -> list[RawRecord]:
        """Ends the running snapshot, which may not have sent everything."""
        if self._images is None:
            return []
        self._images = None
        return [self._snapshot_step(HOSTS[0], "ended"), self._snapshot_step(HOSTS[1], "given_up")]

    def forget_snapshot(self) -> None:
        """Its table was dropped."""
        self._images = None

    def _begin_snapshot(self) -> list[RawRecord]:
        """The images come by falling timestamp: so nothing is seen that something else in the files deletes."""
        table_id = self.versions.newest.id
        self._images = sorted(
            (logged for logged in self._logged if logged.table.id == table_id), key=lambda logged: logged.timestamp
        )
        self._snapshots += 1
        return [self._snapshot_step(host, "running") for host in HOSTS]

    def _send_images(self, count: int) -> list[RawRecord]:
        """Send `count` images, and those that have the same timestamp as the last one."""
        assert self._images is not None
        sent: list[_Logged] = []
        while self._images and (len(sent) < count or self._images[-1].timestamp == sent[-1].timestamp):
            sent.append(self._images.pop())
        return [as_image(self._send(logged), unit=len(self._images) + at) for at, logged in enumerate(sent)]

    def _snapshot_step(self, host: int, state: HostState) -> RawRecord:
        writer = writer_of(self.versions.newest)
        snapshot = UUID(int=self._snapshots)
        return snapshot_step(state, ms=self.now_ms, host=host, hosts=HOSTS, snapshot=snapshot, writer=writer)

    def heartbeats(self, versions_behind: int = 0) -> list[RawRecord]:
        """One of each host; the second one may know an older schema, and says only what it has sent."""
        sent_until = min((logged.made_ms - 1 for logged in self._unsent), default=self.now_ms)
        return [
            raw_record(
                b"", "heartbeat", None, timestamp_ms=self.now_ms, host=host, clock=ms * 1000, writer=writer_of(of)
            )
            for host, ms, of in (
                (HOSTS[0], self.now_ms, self.versions.newest),
                (HOSTS[1], sent_until, self.versions.before(versions_behind)),
            )
        ]

    def timestamp(self, skew: Skew) -> int:
        """µs. Counters are written in order alone, and dropped after all of it."""
        if skew == "rising" or self.versions.newest.is_counter:
            self._rising += 1
            return self.now_us + self._rising
        return (self.now_ms // 1000 + _SKEWS[skew]) * 1_000_000

    def _send(self, logged: _Logged) -> RawRecord:
        for effect in logged.statement.effects:
            effect(self.plain[logged.table.id.bytes])
        return logged.record._replace(timestamp_ms=self.now_ms)

    def _next_mutation(self, partition_key: bytes, origin: Origin) -> _Mutation:
        former, second = self._mutation, self.now_ms // 1000
        if origin.is_joined and former is not None and former[0] == partition_key and former.stamp.second == second:
            return former._replace(part=former.part + 1)
        self._position += 1
        stamp = Stamp(self.timestamp(origin.skew), second, origin.hosts[0])
        table = self.versions.before(origin.versions_behind)
        return _Mutation(partition_key, self._position, 0, table, origin.hosts, stamp)

    def _schema_of(self, host: int, mutation: _Mutation, statement: Statement) -> TableMetadata:
        """The first host knows the newest schema, if that can have written the statement."""
        newest = self.versions.newest
        types = {column.name: column.is_complex for column in newest.static_columns + newest.regular_columns}
        is_known = newest.id == mutation.table.id and statement.columns <= types.keys()
        return newest if host == HOSTS[0] and len(mutation.hosts) > 1 and is_known else mutation.table
