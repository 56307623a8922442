"""Hosts whose logs have writes and truncations, and what their publishers send of them (decision 0035)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from cdc_common.messages.raw import TruncationKind
from tests.support.materializer.fold_checks import NEVER_PURGE
from tests.support.materializer.table_writes import BASE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

HOSTS = (1, 2, 3)
APART_MS = NEVER_PURGE.truncate_ms
BEGIN_MS = BASE_S * 1000
NEVER_MS = BEGIN_MS + 10**9
GAPS_MS = [1000, APART_MS, 2 * APART_MS, 3 * APART_MS, 10 * APART_MS]
SKEWS_MS = [0, 300, APART_MS]  # between the hosts of one TRUNCATE

W = TypeVar("W")


class Truncation(NamedTuple):
    at: int


class Entry(NamedTuple, Generic[W]):
    """An entry of a host's log."""

    position: int
    what: W | Truncation


class Sent(NamedTuple, Generic[W]):
    """A message: of an entry or, without one, a heartbeat with this clock (ms). kind: of a truncation. until: how many
    messages are sent when all that belongs to it is.
    """

    entry: Entry[W] | None
    kind: TruncationKind | None = None
    until: int = 0
    clock: int = 0


class Limits(NamedTuple):
    """The limits that tests rely on. skews_ms: between the hosts of one TRUNCATE. settle_ms: a publisher finishes a
    truncation only if no other one comes within this time. is_retried: a TRUNCATE that fails is tried again.
    """

    skews_ms: list[int] = SKEWS_MS
    settle_ms: int = 2 * APART_MS
    is_retried: bool = True


KEPT = Limits()
BROKEN = Limits([*SKEWS_MS, 2 * APART_MS, 7 * APART_MS], settle_ms=-1, is_retried=False)


class TruncatedHosts(Generic[W]):
    """Writes reach some hosts, a TRUNCATE all of them or, if it fails, some; then it is tried again."""

    def __init__(self, random: Random, make_write: Callable[[], W], limits: Limits = KEPT) -> None:
        self._random = random
        self._make_write = make_write
        self._limits = limits
        self._now = BEGIN_MS
        self.logs: dict[int, list[Entry[W]]] = {host: [] for host in HOSTS}
        for _ in range(random.randint(1, 14)):
            if random.randint(0, 3):
                self._write()
            else:
                self._truncate()

    def _append(self, host: int, what: W | Truncation) -> None:
        self.logs[host].append(Entry(len(self.logs[host]) + 1, what))

    def _write(self) -> None:
        write = self._make_write()
        for host in self._some_hosts():
            self._append(host, write)

    def _some_hosts(self) -> list[int]:
        return self._random.sample(HOSTS, self._random.randint(1, len(HOSTS)))

    def _truncate(self) -> None:
        self._now += self._random.choice(GAPS_MS)
        reached = self._some_hosts()
        if len(reached) < len(HOSTS):
            self._truncate_on(reached)
            if self._random.random() < 0.5:
                self._write()
            self._now += self._random.choice(GAPS_MS)
        if len(reached) == len(HOSTS) or self._limits.is_retried:
            self._truncate_on(list(HOSTS))

    def _truncate_on(self, hosts: list[int]) -> None:
        for host in hosts:
            before = max((entry.what.at for entry in self.logs[host] if isinstance(entry.what, Truncation)), default=0)
            at = self._now + self._random.choice(self._limits.skews_ms)
            self._append(host, Truncation(max(at, before + 1)))

    def left(self) -> Iterator[tuple[int, Entry[W]]]:
        """Return the writes of each host since its own last truncation."""
        for host, log in self.logs.items():
            ends = [entry.position for entry in log if isinstance(entry.what, Truncation)]
            for entry in log[max(ends, default=0) :]:
                yield host, entry

    def arrivals(self) -> Iterator[tuple[int, Sent[W], int]]:
        """The messages of all hosts, each in its order, with rising times (ms)."""
        queues = {host: _SendingHost(self.logs[host], self._random, self._limits).with_copies()[::-1] for host in HOSTS}
        ms = BEGIN_MS
        while waiting := [host for host in HOSTS if queues[host]]:
            host = self._random.choice(waiting)
            ms += self._random.choice([0, 1, 1000, 200_000])
            yield host, queues[host].pop(), ms


class _SendingHost(Generic[W]):
    """A publisher. It may notice a truncation after it has sent what comes after that; one that it has not finished is
    replaced by the next one.
    """

    def __init__(self, log: list[Entry[W]], random: Random, limits: Limits) -> None:
        self._log = log
        self._random = random
        self._limits = limits
        self._read = 0
        self._unnoticed: int | None = None
        self._pending: int | None = None
        self._sent: list[Sent[W]] = []
        while moves := self._moves():
            random.choice(moves)()
            if random.random() < 0.1:
                self._sent.append(Sent(None, clock=self._clock()))

    def with_copies(self) -> list[Sent[W]]:
        """Some of it again after a crash; but not always the truncations that were fully acknowledged."""
        crashed = self._random.randint(0, len(self._sent))
        again = self._sent[self._random.randint(0, crashed) :]
        if self._random.random() < 0.5:
            again = [entry for entry in again if entry.kind != "truncated" or entry.until > crashed]
        return self._sent[:crashed] + again

    def _moves(self) -> list[Callable[[], None]]:
        found: list[Callable[[], None]] = []
        if self._read < len(self._log):
            found.append(self._read_next)
        if self._unnoticed is not None:
            found.append(self._notice)
        if self._pending is not None and self._may_settle(self._pending):
            found.append(self._settle)
        return found

    def _read_next(self) -> None:
        entry = self._log[self._read]
        if isinstance(entry.what, Truncation):
            self._unnoticed = self._read
        else:
            self._sent.append(Sent(entry))
        self._read += 1

    def _notice(self) -> None:
        self._pending, self._unnoticed = self._unnoticed, None
        if self._pending is not None and self._random.random() < 0.7:  # or it was away, and it is settled already
            self._sent.append(Sent(self._log[self._pending], "truncate"))

    def _may_settle(self, pending: int) -> bool:
        """Return False if another truncation comes too soon after it."""
        at, *later = self._truncated_from(pending)
        return not later or later[0] > at + self._limits.settle_ms

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        assert pending is not None
        rest = [Sent(entry) for entry in self._log[pending : self._read] if not isinstance(entry.what, Truncation)]
        self._sent += [Sent(self._log[pending], "truncated", len(self._sent) + 1 + len(rest)), *rest]

    def _clock(self) -> int:
        """A time up to which it has sent all."""
        unsent = [at for at in (self._pending, self._unnoticed, self._read) if at is not None]
        later = self._truncated_from(min(unsent))
        return later[0] - 1 if later else NEVER_MS

    def _truncated_from(self, first: int) -> list[int]:
        return [entry.what.at for entry in self._log[first:] if isinstance(entry.what, Truncation)]
