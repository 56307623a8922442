"""Runs a history: its records are folded in any parts, and what comes out is checked against the plain model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import currently_in_test_context, note

from materializer.rows.keys import CONTINUATION, EVOLVED, EXPIRY, PARTITION, PURGE, REORDER, REORDER_TIMER
from tests.support.materializer.history.chains import Chains
from tests.support.materializer.history.cluster import Cluster
from tests.support.materializer.history.raw_partitions import RawPartitions
from tests.support.materializer.history.statements import KEYS, ROWS
from tests.support.materializer.history.steps import (
    ALL,
    Alter,
    Check,
    Delete,
    Fold,
    HandOver,
    History,
    Op,
    Pass,
    Recreate,
    Reshard,
    Restart,
    Snapshot,
    Write,
)
from tests.support.materializer.history.table_versions import GC_GRACE_SECONDS, writer_of

if TYPE_CHECKING:
    from cassandra_storage.formats.rows.clustering import Clustering
    from cdc_common.messages.changes import RowChange
    from materializer.records import RawRecord
    from tests.support.materializer.history.steps import Step

_PATIENCE = 300  # heartbeats: far more than any state needs
_LEFT = (PARTITION, EXPIRY, PURGE, REORDER, REORDER_TIMER, EVOLVED, CONTINUATION)


class HistoryRun:
    """Take each step, then `finish`."""

    def __init__(self, history: History) -> None:
        self.cluster = Cluster(history.shape)
        self.raw = RawPartitions(history.partitions)
        self.chains = Chains()
        self.changes: list[RowChange] = []
        self._is_stepwise = history.is_stepwise
        self._is_reversed = history.is_reversed
        self._all_records: list[RawRecord] = []
        self._append(self.cluster.heartbeats())
        self._check = _Checkpoint(self)

    def take(self, step: Step) -> None:
        self.cluster.now_ms += 1
        match step:
            case Alter() | Recreate():
                self._change_schema(step)
            case Write() | Delete():
                self._append(self.cluster.log(step))
            case HandOver():
                self._append(self.cluster.hand_over())
            case Snapshot():
                self._append(self.cluster.snapshot(step))
            case Pass(seconds, with_heartbeats, versions_behind):
                self.cluster.now_ms += seconds * 1000
                self._append(self.cluster.heartbeats(versions_behind) if with_heartbeats else [])
            case _:
                self._take_job_step(step)
        if self._is_stepwise:
            self.check()

    def _take_job_step(self, step: Fold | Restart | Reshard | Check) -> None:
        match step:
            case Fold(records, parts):
                self._add(self.raw.fold(self.cluster.versions.catalog(), records, parts))
            case Restart():
                self.raw.restart(*step)
            case Reshard(partitions, is_caught_up):
                if is_caught_up:
                    self._fold_all()
                catalog = self.cluster.versions.catalog()
                changes, self.cluster.now_ms = self.raw.reshard(partitions, catalog, self.cluster.now_ms)
                self._add(changes)
            case Check():
                self.check()

    def check(self) -> None:
        """Fold everything that the raw topic holds, and compare."""
        self.cluster.now_ms += self.raw.settings.reorder_ms
        self._append(self.cluster.heartbeats())
        self._fold_all()
        for _ in range(_PATIENCE):
            if self.raw.is_settled():
                break
            self._append(self.cluster.heartbeats())
            self._fold_all()
        else:
            raise AssertionError("rows are still shown under an older schema")
        self._check.compare()
        self._check = _Checkpoint(self)

    def finish(self) -> None:
        """Compare; then each row must still take a write, and deleted partitions must leave nothing."""
        self._append(self.cluster.hand_over())
        self._append(self.cluster.end_snapshot())
        self.check()
        self._check_any_order()
        self.raw.restart(0, self.raw.settings.max_changes)
        for p in range(len(KEYS)):
            for c in (*range(ROWS), None):
                self._append(self.cluster.log(Write(p, c, (Op(0, value=1),), is_insert=True)))
        self.check()
        self.cluster.now_ms += 10_000  # after all writes of the future
        for p in range(len(KEYS)):
            self._append(self.cluster.log(Delete(p, "partition")))
        self.check()
        assert not any(self.chains.rows(key) for key in KEYS), "rows are left of deleted partitions"
        self._check_purge()

    def second(self) -> int:
        """Rows are shown as of this second, once everything is folded."""
        return (self.cluster.now_ms - self.raw.settings.reorder_ms) // 1000

    def _append(self, records: list[RawRecord]) -> None:
        for record in records:
            self.raw.append(record)
            if record.key:
                self._all_records.append(record)
                self._check.written += 1

    def _change_schema(self, step: Alter | Recreate) -> None:
        cluster, versions = self.cluster, self.cluster.versions
        match step:
            case Recreate(shape):
                statement: str | None = versions.create(shape, cluster.now_us)
                cluster.forget_snapshot()
            case Alter("drop", column, skew, is_type_known):
                time = cluster.timestamp(skew)
                statement = versions.drop(column, time, cluster.now_us, is_type_known=is_type_known)
            case Alter("add", column):
                statement = versions.add(column, cluster.now_us)
            case Alter("add_field"):
                statement = versions.add_field(cluster.now_us)
            case Alter("assign"):
                statement = versions.assign()
            case Alter("rename_field"):
                statement = versions.rename_field(cluster.now_us)
            case _:
                statement = versions.rename_key(cluster.now_us)
        if statement is not None:
            if currently_in_test_context():
                note(f"at {cluster.now_us}: {statement}")
            self._check.statements += 1

    def _fold_all(self) -> None:
        self._add(self.raw.fold(self.cluster.versions.catalog(), ALL, ALL))

    def _add(self, changes: list[RowChange]) -> None:
        schemas = {writer_of(table).digest: table for table in self.cluster.versions.tables}
        self.changes += changes
        self.chains.add(changes, schemas, is_gapless=self.cluster.is_young)

    def _check_any_order(self) -> None:
        """All records in another order, at once, under the newest schema: the same rows."""
        records = self._all_records[::-1] if self._is_reversed else self._all_records[1::2] + self._all_records[::2]
        raw, chains, catalog = RawPartitions(1), Chains(), self.cluster.versions.catalog()
        raw.settings = raw.settings._replace(purge_margin_seconds=10**9)
        for record in records:
            raw.append(record._replace(timestamp_ms=self.cluster.now_ms))
        schemas = {writer_of(table).digest: table for table in self.cluster.versions.tables}
        for _ in range(_PATIENCE):
            for record in self.cluster.heartbeats():
                raw.append(record)
            chains.add(raw.fold(catalog, ALL, ALL), schemas, is_gapless=False)
            if raw.is_settled():
                break
        now = self.cluster.now_ms // 1000
        for key in KEYS:
            assert chains.rows(key) == self.cluster.visible(key, now), "another order of arrival, other rows"

    def _check_purge(self) -> None:
        for _ in range(_PATIENCE):
            self.cluster.now_ms += (GC_GRACE_SECONDS + 1) * 1000
            self._append(self.cluster.heartbeats())
            self._fold_all()
            left = [key for raw in self.raw.all for key in raw.state.data if key.startswith(_LEFT)]
            if not left:
                return
        raise AssertionError(f"left in the state after everything was deleted and purged: {left}")


class _Checkpoint:
    """The visible rows at a time when everything was folded, and the changes since."""

    def __init__(self, run: HistoryRun) -> None:
        self._run = run
        self._second = run.second()
        self._before = {key: run.chains.rows(key) for key in KEYS}
        self._first = len(run.changes)
        self._topic = run.cluster.versions.newest_topic
        self.written = self.statements = 0

    def compare(self) -> None:
        run, second = self._run, self._run.second()
        for key in KEYS:
            assert run.chains.rows(key) == run.cluster.visible(key, second), f"rows of {key.hex()} at {second}"
        assert run.chains.topics() <= run.raw.topics(), "rows in a topic that was left"
        assert run.raw.topics() <= {run.cluster.versions.newest_topic}, "rows that have not moved"
        changes = [change for change in run.changes[self._first :] if change.source.cause != "moved"]
        for change in changes:
            if change.source.cause == "expiry":
                seconds = {second for plain in run.cluster.plain.values() for second in plain.expiry_seconds}
                assert change.source.ts_us // 1_000_000 in seconds, f"nothing expires then: {change}"
        if not self.written and not self.statements:
            self._compare_expiry(changes, second)
        elif self.written + self.statements == 1 and second == self._second:
            self._compare_one(changes)

    def _compare_expiry(self, changes: list[RowChange], last: int) -> None:
        """Compare after only time has passed: what expires comes out, each at its second."""
        cluster = self._run.cluster
        expected = [
            (key, clustering, second * 1_000_000, before.get(clustering), after.get(clustering))
            for second in sorted(second for second in cluster.expiry_seconds if self._second < second <= last)
            for key in KEYS
            for before in (cluster.visible(key, second - 1),)
            for after in (cluster.visible(key, second),)
            for clustering in before.keys() | after.keys()
            if before.get(clustering) != after.get(clustering)
        ]
        found = [
            (change.partition_key, change.clustering, change.source.ts_us, change.before, change.after)
            for change in changes
            if change.source.cause == "expiry"
        ]
        assert sorted(found, key=repr) == sorted(expected, key=repr), "expiry"
        assert len(found) == len(changes), "changes without a cause"

    def _compare_one(self, changes: list[RowChange]) -> None:
        """One message, or one statement that changes the schema: each row that changes does so once."""
        cluster = self._run.cluster
        expected = sorted(
            (key, clustering or ())
            for key, before in self._before.items()
            for after in (cluster.visible(key, self._second),)
            for clustering in before.keys() | after.keys()
            if before.get(clustering) != after.get(clustering)
        )
        found = sorted(_without_expired_writes(changes))
        is_same_topic = cluster.versions.newest_topic == self._topic
        if self.written or is_same_topic:
            assert found == expected, "a row changed more than once, or without a difference"
        causes = {"write", "expired_write", "expiry"} if self.written else {"schema"}
        assert {change.source.cause for change in changes} <= causes, "cause"


def _without_expired_writes(changes: list[RowChange]) -> list[tuple[bytes, Clustering]]:
    """The row of each change. The changes by one expired write count once, or not if the row is as before."""
    shown: dict[tuple[bytes, Clustering], RowChange] = {}
    found = []
    for change in changes:
        row = change.partition_key, change.clustering or ()
        if change.source.cause in ("expired_write", "expiry"):
            shown.setdefault(row, change)
        if row not in shown:
            found.append(row)
    last = {(change.partition_key, change.clustering or ()): change.after for change in changes}
    return found + [row for row, first in shown.items() if first.before != last[row]]


def check_history(history: History) -> None:
    run = HistoryRun(history)
    for step in history.steps:
        run.take(step)
    run.finish()
