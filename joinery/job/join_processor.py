"""Joins chunks of messages of an internal topic, for the protocol of a task with a state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError
from joinery.faults import definition_changed, fan_out_limited, history_lost, message_refused
from joinery.internal.codec import CodecError, decode
from joinery.job.join_report import JoinReport, is_of, with_totals
from joinery.job.native_join import IS_NATIVE, NativeJoin
from joinery.joining.errors import DefinitionError, FanOutError, JoinError, LostHistoryError, masked
from joinery.joining.join import join_chunk
from joinery.joining.records import Joined
from joinery.joining.start import is_empty
from joinery.output.messages import JoinedWriter
from stream_runtime.exactly_once.processor import Processor
from stream_runtime.source_batch import MessageGroups

if TYPE_CHECKING:
    from collections.abc import Iterable

    from joinery.joining.records import Routed
    from joinery.records import Stage
    from stream_runtime.exactly_once.report import Report
    from stream_runtime.records import Message, Record, SourcePartition
    from stream_runtime.state.reader import StateReader


class ChunkResult(NamedTuple):
    """The result of a chunk, or of its first part."""

    # The writes to the state; None deletes a key.
    writes: Mapping[bytes, bytes | None]
    # Kafka's time of the last message (ms).
    now_ms: int
    # The changes of joined rows, in order, that the Python code has made.
    changes: Sequence[Joined]
    # How many messages, from the end, are left.
    left: int
    # The messages that the native core has made, in place of changes.
    native: MessageGroups | None = None
    # How many changes there are.
    total: int = 0
    # The part of the report about the state.
    report: JoinReport | None = None


class JoinProcessor(Processor[ChunkResult]):
    """Joins the messages of one partition of an internal topic."""

    def __init__(self, stage: Stage, partition: SourcePartition, most_bytes: int, *, in_core: bool = IS_NATIVE) -> None:
        """most_bytes: of changes in a transaction. in_core: whether the native core joins what it can."""
        self.shape = stage.internal_shape
        self._stage = stage
        self._partition = partition
        self._most_bytes = most_bytes
        self._writer = JoinedWriter(stage.plan, stage.target, stage.key_id, stage.value_id)
        self._native = NativeJoin(stage.plan.rule, self._writer, partition.partition) if in_core else None

    def fold(self, state: StateReader, records: Sequence[Record]) -> ChunkResult:
        """CdcError JOIN_MESSAGE or JOIN_CHANGED, for the first message only: those before another one are joined first.

        The native core joins the messages before the first one that it does not take. That one is joined next, alone.
        """
        if not is_of(state, self._stage.plan.rule):
            raise definition_changed(self._stage.plan.join.name, self._partition, records[0].offset)
        if is_empty(state):
            return self._begin(state, records)
        if self._native is None:
            return self._fold(state, records)
        made = self._native.join(state, records, self._most_bytes)
        if made is not None:
            now_ms = records[-1].timestamp_ms
            writes, report = with_totals(state, self._stage.plan.rule, made.writes, made.sizes)
            return ChunkResult(writes, now_ms, (), made.left, made.messages, made.changes, report)
        result = self._fold(state, records[:1])
        return result._replace(left=result.left + len(records) - 1)

    def _begin(self, state: StateReader, records: Sequence[Record]) -> ChunkResult:
        """A new state loads rows first. Its first message says so."""
        result = self._fold(state, records[:1], is_new=True)
        return result._replace(left=result.left + len(records) - 1)

    def _fold(self, state: StateReader, records: Sequence[Record], *, is_new: bool = False) -> ChunkResult:
        messages: list[tuple[int, Routed]] = []
        for record in records:
            try:
                messages.append((record.offset, decode(record.key, record.value)))
            except (CodecError, CdcError) as error:
                if messages:
                    break
                if isinstance(error, CdcError):
                    raise
                raise self._refused(record, str(error)) from error
        try:
            made = join_chunk(self._stage.plan.rule, state, messages, self._most_bytes, is_new=is_new)
        except LostHistoryError as error:
            raise history_lost(self._stage.plan.join.name, self._partition, records[0].offset, error.reason) from error
        except DefinitionError as error:
            raise definition_changed(self._stage.plan.join.name, self._partition, records[0].offset) from error
        except FanOutError as error:
            plan = self._stage.plan
            counts = {given.name: count for given, count in zip(plan.inputs, error.counts, strict=True)}
            at = (self._partition, records[0].offset)
            raise fan_out_limited(plan.join.name, at, error.reason, masked(error.group), counts) from error
        except JoinError as error:
            raise self._refused(records[0], error.reason) from error
        left = len(records) - len(messages) + made.left
        writes, report = with_totals(state, self._stage.plan.rule, made.writes, made.sizes)
        now_ms = records[-1].timestamp_ms
        return ChunkResult(writes, now_ms, made.changes, left, total=len(made.changes), report=report)

    def messages(self, partition: SourcePartition, result: ChunkResult) -> Iterable[Message]:
        if result.native is not None:
            return result.native
        return self._writer.messages(result.changes, partition.partition)

    def add_to(self, report: Report, first: int, end: int, result: ChunkResult) -> Report:
        native = result.total if result.native is not None else 0
        return report.with_chunk(first, end, changes=result.total, native=native, own=result.report)

    def _refused(self, record: Record, reason: str) -> Exception:
        return message_refused(self._stage.plan.join.name, self._partition, record.offset, reason)
