"""The model check judges changes: former versions of a topic, chains, counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from cassandra.cqltypes import Int32Type

from dev.local_stack.clients.change import Change
from dev.local_stack.clients.cql import TableColumns
from dev.local_stack.clients.history import History
from dev.verify.model.kinds import INT
from dev.verify.model.outcome import Outcome
from dev.verify.model.tables import Table

if TYPE_CHECKING:
    from dev.local_stack.clients.cql import CqlClient

TABLE = Table("again", 3, regular=(("v", INT),))


class FakeClient:
    """A table `again (p int PRIMARY KEY, v int)` with one row."""

    def columns(self, _keyspace: str, _table: str) -> TableColumns:
        return TableColumns(("p",), {"p": Int32Type, "v": Int32Type})

    def rows(self, _keyspace: str, _table: str) -> list[dict[str, Any]]:
        return [{"p": 1, "v": 3}]


def change(topic: str, key: dict[str, Any], before: int | None, after: int | None, sequence: int, ts_ms: int) -> Change:
    images = {"before": before, "after": after}
    value: dict[str, Any] = {name: v if v is None else {**key, "v": v} for name, v in images.items()}
    op = "c" if before is None else "d" if after is None else "u"
    source = {"row_sequence": sequence, "ts_us": 0, "cause": "write"}
    return Change("ks", topic, 0, 0, key, {**value, "op": op, "source": source, "ts_ms": ts_ms}, 0.0)


def tombstone(topic: str, key: dict[str, Any]) -> Change:
    return Change("ks", topic, 0, 0, key, None, 0.0)


CURRENT = [
    change("again-v2", {"p": 1}, None, 2, 1, 30),
    change("again-v2", {"p": 1}, 2, 3, 2, 40),
]
FORMER = [
    change("again", {"k": "a"}, None, 5, 1, 10),
    change("again", {"k": "a"}, 5, None, 2, 20),
    tombstone("again", {"k": "a"}),
]


def problems(*changes: Change, table: Table = TABLE) -> list[str]:
    history = History()
    history.add(changes)
    return Outcome(cast("CqlClient", FakeClient()), "ks", [table], history).problems()


def test_the_newest_version_of_a_topic_is_compared() -> None:
    assert problems(*FORMER, *CURRENT) == []


def test_a_row_that_is_left_in_a_former_version_is_a_problem() -> None:
    [left, *_] = problems(FORMER[0], *CURRENT)
    assert left == "ks.again k='a': not deleted in a former version of the topic"


def test_a_broken_chain_names_the_row_as_the_comparison_does() -> None:
    broken = change("again-v2", {"p": 1}, 1, 3, 2, 40)
    assert problems(*FORMER, CURRENT[0], broken) == [
        "ks.again (1,): before of row_sequence 2 is not the after of the change before it"
    ]


def test_numbers_may_be_left_out_where_rows_are_purged_soon_or_have_been_in_another_topic() -> None:
    key = {"p": 1}
    row = [
        change("again", key, None, 2, 1, 30),
        change("again", key, 2, 4, 2, 35),
        change("again", key, 4, None, 3, 40),
        tombstone("again", key),
        change("again", key, None, 3, 9, 60),
    ]
    assert problems(*row) == ["ks.again (1,): row_sequence 9 follows 3"]
    purged = Table("again", 3, regular=(("v", INT),), gc_grace=20)
    assert problems(*row, table=purged) == []
    away = [change("again-v2", {"k": "a"}, None, 3, 3, 50), change("again-v2", {"k": "a"}, 3, None, 4, 55)]
    assert problems(*row[:4], *away, tombstone("again-v2", {"k": "a"}), row[4]) == []


def test_a_missing_tombstone_and_a_missing_operation_are_problems() -> None:
    assert problems(*FORMER[:2], *CURRENT) == ["1 deletes, but 0 tombstones"]
    assert problems(*FORMER, change("again-v2", {"p": 1}, None, 3, 1, 30)) == ["not every operation has come"]
