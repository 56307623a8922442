"""The Avro engine beside Java's Avro: a small part of `make verify WHAT=avro`, and whether it finds defects."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

pytest.importorskip("cdc_native.avro.columns", reason="the native core is not compiled: test_compiled says so")

from cdc_native.avro.messages import Messages
from dev.verify.avro.compare import Found, compare_schema
from dev.verify.avro.judge import JavaJudge, Judged

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = pytest.mark.servers
SCHEMAS = 20


@pytest.fixture(scope="module")
def java() -> Iterator[JavaJudge]:
    with JavaJudge() as judge:
        yield judge


def test_random_schemas(java: JavaJudge) -> None:
    found = Found()
    for number in range(SCHEMAS):
        compare_schema(java, random.Random(f"test {number}"), found)
    assert found.differences == []
    assert found.messages >= SCHEMAS * 80
    assert min(found.rows, found.both_take, found.both_refuse) > 0


def test_java_says_what_it_reads(java: JavaJudge) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": "int"}, {"name": "b", "type": {"type": "array", "items": "string"}}],
    }
    in_blocks = b"\x02" + b"\x02\x02x" + b"\x01\x04\x02y" + b"\0"
    assert java.judge(schema, ["b"], [in_blocks, b"\x02", b"\x02\0\0"]) == [
        Judged((1, 9), b"\x02\x04\x02x\x02y\0", b"\x04\x02x\x02y\0"),
        None,
        None,
    ]


@pytest.mark.parametrize("what", ["ends", "rows", "fields"])
def test_a_defect_is_found(java: JavaJudge, what: str) -> None:
    """Messages that are others than those that Java gets."""
    whole = Messages.of

    def without_last(messages: Sequence[bytes]) -> Messages:
        return whole([messages[0], *messages[:-1]])

    calls = {"ends": 0, "fields": 1, "rows": 2}
    seen = iter(range(100))

    def of(messages: Sequence[bytes]) -> Messages:
        return without_last(messages) if next(seen) == calls[what] else whole(messages)

    found = Found()
    with patch("dev.verify.avro.compare.Messages") as mocked:
        mocked.of = of
        compare_schema(java, random.Random("rows 1"), found)
    assert {difference.partition(":")[0].partition(" ")[0] for difference in found.differences} == {what}
