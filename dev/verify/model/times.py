"""The timestamps and TTLs of a workload's writes: they tie, come late, lie far ahead or at the ends of the range."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from dev.verify.model.cql_text import Cql, cql
from dev.verify.model.values import NULL, UNSET, Value, integer, timestamp

if TYPE_CHECKING:
    import random

    from dev.verify.model.tables import Table

TTLS = (1, 4, 10, 86_400, 0)  # seconds; what does not expire within a run does not at all
LONGEST_TTL = 10
LARGEST_TTL = 630_720_000  # 20 years: Attributes.MAX_TTL
LONG_TTLS = (400_000_000, LARGEST_TTL)  # some expire after 2038, which versions that cannot store that cap
STEP_US = 2_000  # between statements: about the pace at which they are executed
FAR_AHEAD_US = 3_600_000_000
LATE_US = 2_000_000
RECENT = 40  # timestamps to tie with
LARGEST = 2**63 - 1
SMALLEST = 1 - 2**63  # one less stands for no timestamp


class Times:
    """Timestamps of one seed, from `start_us` on; with `has_ties`, several writes may have one timestamp. What
    has a long TTL expires after 2038 where the node can store that, and is capped where the node's settings say so.
    """

    def __init__(self, pick: random.Random, start_us: int, *, has_ties: bool, has_long_ttls: bool = False) -> None:
        self.has_ties = has_ties
        self.now = start_us
        self._pick = pick
        self._number = 0
        self._ttls = (*TTLS, *LONG_TTLS) if has_long_ttls else TTLS
        self.recent: deque[int] = deque([start_us], maxlen=RECENT)  # to tie with

    def step(self) -> None:
        self.now += STEP_US

    def next(self) -> int:
        """Later than all before it, except what is far ahead."""
        self.now += 1
        return self.now

    def using(
        self, table: Table, *, can_expire: bool = False, can_be_extreme: bool = True, is_bound: bool = False
    ) -> Cql:
        """USING, as most statements have it; `can_expire`: sometimes with a TTL."""
        terms = self._timestamp_terms(table, can_be_extreme=can_be_extreme, is_bound=is_bound)
        if can_expire and self._pick.random() < 0.25:
            terms.append(cql("TTL {}", self._ttl(is_bound=is_bound)))
        return cql(" USING " + " AND ".join("{}" for _ in terms), *terms) if terms else Cql("")

    def _timestamp_terms(self, table: Table, *, can_be_extreme: bool, is_bound: bool) -> list[Cql]:
        if table.times == "rising":
            return [cql("TIMESTAMP {}", timestamp(self.next()))]
        if table.times == "extreme" and can_be_extreme and self._pick.random() < 0.4:
            return [cql("TIMESTAMP {}", timestamp(self._extreme()))]
        # What is written to a column that was dropped counts if it is newer than the drop, whose time is the node's.
        if self._pick.random() < (0.4 if table.evolution == "columns" else 0.04):
            return [cql("TIMESTAMP {}", UNSET)] if is_bound else []
        return [cql("TIMESTAMP {}", timestamp(self._timestamp()))]

    def ttl(self) -> Cql:
        return cql("TTL {}", self._ttl(is_bound=False))

    def _ttl(self, *, is_bound: bool) -> Value:
        chance = self._pick.random()
        if is_bound and chance < 0.1:
            return self._pick.choice((UNSET, NULL))
        return integer(self._pick.choice(self._ttls))

    def _extreme(self) -> int:
        """Return an extreme timestamp. Without ties, each is different."""
        self._number += 1
        near = self._pick.randrange(3) if self.has_ties else self._number
        return self._pick.choice((SMALLEST + near, -near, near, LARGEST - near, -1_000_000 - near))

    def _timestamp(self) -> int:
        chance = self._pick.random()
        if not self.has_ties:
            self.now += 1
            late = self._pick.randrange(LATE_US) // STEP_US * STEP_US if chance < 0.3 else 0
            return self.now - late
        if chance < 0.15:
            return self._pick.choice(self.recent)
        if chance < 0.30:
            return self.now - self._pick.randrange(LATE_US)
        if chance < 0.302:
            return self.now + FAR_AHEAD_US
        self.recent.append(self.now)
        return self.now
