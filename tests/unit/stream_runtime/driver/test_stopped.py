"""The registry of stopped raw partitions: when each is tried again, and when it has resumed."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.driver.scope import pauses
from stream_runtime.driver.stopped import Failure, StoppedShares
from tests.support.stream_runtime.shares import share

A, B = share("cdc.raw.ks.a", 0), share("cdc.raw.ks.b", 1)
CODES = st.sampled_from([Code.SCHEMA_UNKNOWN, Code.CHECKPOINT_LOCATION, Code.STATE_DAMAGED, Code.UNEXPECTED])


def failure(code: Code = Code.STATE_DAMAGED, offsets: tuple[int, int] | None = None) -> Failure:
    return Failure(CdcError(code, "It does not go.", "Make it go."), offsets)


@given(st.sampled_from(Code))
def test_pauses_grow_up_to_their_longest(code: Code) -> None:
    first, longest, at_once, _ = own = pauses(code)
    found = [own.after(failures) for failures in range(1, 100)]
    assert found[at_once] == first
    assert (found[0] == 0) == at_once
    assert all(later in (min(longest, 2 * earlier), longest) for earlier, later in itertools.pairwise(found[at_once:]))
    assert found[-1] == longest <= 300


def test_waiting_is_short_where_it_helps() -> None:
    for code in Code:
        helps = code in {
            Code.SCHEMA_UNKNOWN,
            Code.KAFKA_UNREACHABLE,
            Code.REGISTRY_UNREACHABLE,
            Code.CHECKPOINT_LOCATION,
            Code.TRANSACTION_EXPIRED,
            Code.ARCHIVE_STORE_AWAY,
            Code.WAREHOUSE_AWAY,
        }
        is_resumed = code is Code.WAREHOUSE_PAUSED  # by a user, who waits for it
        assert pauses(code).longest == (10 if helps else 5 if is_resumed else 300), code
        heals = helps and code is not Code.SCHEMA_UNKNOWN
        assert pauses(code).heals_seconds == (60 if heals else 0), code


def test_another_code_begins_with_a_short_pause() -> None:
    now = 0.0
    stopped = StoppedShares(lambda: now, lambda: 1e9 + now)
    for _ in range(6):
        stopped.stop(A, failure())
        now += 500
        assert stopped.begin_tries() == {A}
    stop = stopped.stop(A, failure(Code.UNEXPECTED))
    assert (stop.attempts, stop.since, stop.next_try) == (1, 1e9, now + 1)


def test_a_retry_by_command_is_due_now() -> None:
    stopped = StoppedShares(lambda: 0.0)
    stopped.stop(A, failure())
    stopped.stop(B, failure())
    assert stopped.retry([B, share("cdc.raw.ks.c", 0)]) == [B]
    assert stopped.begin_tries() == {B}
    assert stopped.retry([B]) == []  # it is being tried
    assert stopped.retry() == [A]
    assert stopped.begin_tries() == {A}
    stopped.forget_all_but([B])
    assert list(stopped.all()) == [B]


class Life(RuleBasedStateMachine):
    """One raw partition fails, is tried and folds; the registry agrees with what each step says."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.stopped = StoppedShares(lambda: self.now, lambda: self.now)
        self.until: int | None = None
        self.due: float | None = None
        self.since: float | None = None

    @rule(code=CODES, first=st.integers(0, 5), count=st.integers(0, 5))
    def fail(self, code: Code, first: int, count: int) -> None:
        if not self.stopped.may_run(A):
            return
        self.until = first + count if count else -1
        self.since = self.now if self.since is None else self.since
        stop = self.stopped.stop(A, failure(code, (first, first + count) if count else None))
        self.due = self.now + pauses(code).after(stop.attempts)

    @rule(end=st.integers(0, 12))
    def fold(self, end: int) -> None:
        if not self.stopped.may_run(A):
            return
        ended = self.stopped.advance(A, end)
        assert (ended is not None) == (self.until is not None and end >= self.until)
        if ended is not None:
            assert ended.since == self.since
            self.until = self.due = self.since = None

    @rule(seconds=st.floats(0, 400))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule()
    def begin(self) -> None:
        is_due = self.due is not None and self.due <= self.now
        assert self.stopped.begin_tries() == ({A} if is_due else set())
        if is_due:
            self.due = None

    @invariant()
    def agrees(self) -> None:
        assert (A in self.stopped.all()) == (self.until is not None)
        assert self.stopped.may_run(A) == (self.due is None)
        assert self.stopped.may_run(B)


TestLife = Life.TestCase
