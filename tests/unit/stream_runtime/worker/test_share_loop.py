"""The loop over open shares, with shares that are only written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.clients.kafka_errors import ProducerExpiredError
from cdc_common.errors.codes import CdcError, Code
from stream_runtime.exactly_once.commits import NotOwnerError
from stream_runtime.exactly_once.report import NOTHING_DONE
from stream_runtime.exactly_once.stateless_task import Done
from stream_runtime.faults import NEUTRAL_FAULTS
from stream_runtime.kafka.source_reader import Read
from stream_runtime.records import Share, SourcePartition, SourceRecord, TopicShape
from stream_runtime.worker.open_shares import OpenShares
from stream_runtime.worker.share_loop import ShareLoop
from stream_runtime.worker.task import Assignment, TaskResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ONE, TWO = (Share.of(SourcePartition("source", number)) for number in range(2))
PROBLEM = CdcError(Code.TRANSFORM_FAILED, "it does not fit", "")


class NotedShares(OpenShares[None, "NotedOpen"]):
    """Each read has the same messages. outcomes: of processing a share, which is then done or fails."""

    def __init__(self, outcomes: Mapping[Share, Done | Exception]) -> None:
        self._faults = NEUTRAL_FAULTS
        self._readers = {}
        self._open = {}
        self._outcomes = outcomes
        self.opened: list[Share] = []
        self.read_errors: dict[SourcePartition, CdcError] = {}
        self.failure: CdcError | None = None

    def group(self, reader: str) -> str:
        return reader

    def open(self, plan: None, share: Share) -> None:
        self.opened.append(share)
        self._open[share] = self.open_share(plan, share, None)

    def open_share(self, _plan: None, _share: Share, _reader: object) -> NotedOpen:
        return NotedOpen()

    def is_planned(self, _plan: None, _share: Share, _opened: NotedOpen) -> bool:
        return True

    def read(self, _most: int, _seconds: float) -> Iterator[tuple[str, Read | CdcError]]:
        records: dict[SourcePartition, Sequence[SourceRecord]] = {
            share.partition: [SourceRecord(b"k", b"v", 7)] for share in self._outcomes
        }
        yield "", self.failure or Read(records, {}, self.read_errors)

    def process(self, share: Share, _read: Read) -> Done:
        outcome = self._outcomes[share]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class NotedOpen:
    """An open share without a reader."""

    shapes: Mapping[SourcePartition, TopicShape] = {}

    def close(self) -> None: ...


def run(shares: NotedShares, *, retried: bool = False) -> dict[Share, TaskResult]:
    assigned = tuple(shares._outcomes)
    loop = ShareLoop(NEUTRAL_FAULTS.words, shares, 0)
    assignment = Assignment(assigned, 1, 0.0, assigned if retried else ())
    return {result.share: result for result in loop.run_batch(None, assignment)}


def done(messages: int) -> Done:
    return Done(NOTHING_DONE._replace(end=7, messages=messages, chunks=1))


def test_a_share_that_another_process_has_is_closed_and_opened_again() -> None:
    shares = NotedShares({ONE: NotOwnerError("another"), TWO: done(1)})
    assert run(shares).keys() == {TWO}
    assert shares.shares == {TWO}
    run(shares)
    assert shares.opened == [ONE, TWO, ONE]


def test_a_failure_stops_its_share_alone() -> None:
    shares = NotedShares({ONE: Done(done(0).report, PROBLEM), TWO: done(1)})
    results = run(shares)
    assert (results[ONE].error, results[ONE].offsets, results[TWO].error) == (PROBLEM, (7, 8), None)
    assert shares.shares == {TWO}


def test_what_was_read_before_an_error_is_processed() -> None:
    shares = NotedShares({ONE: done(1)})
    shares.read_errors = {ONE.partition: PROBLEM}
    [result] = run(shares).values()
    assert result.report is not None
    assert (result.report.messages, result.error) == (1, PROBLEM)


def test_an_error_of_a_reader_stops_its_shares() -> None:
    shares = NotedShares({ONE: done(1), TWO: done(1)})
    shares.failure = PROBLEM
    assert [result.error for result in run(shares).values()] == [PROBLEM, PROBLEM]


def test_a_share_whose_producer_has_expired_is_renewed() -> None:
    shares = NotedShares({ONE: ProducerExpiredError(Code.KAFKA_UNREACHABLE, "it has expired", "")})
    [result] = run(shares).values()
    assert result.report is not None
    assert (result.report.renewed, result.error) == (1, None)
    assert shares.shares == set()


@pytest.mark.parametrize("retried", [False, True])
def test_a_share_that_is_tried_again_tells_that_it_works_before_anything_is_committed(*, retried: bool) -> None:
    shares = NotedShares({ONE: Done()})
    assert (ONE in run(shares, retried=retried)) is retried
