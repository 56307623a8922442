"""Parts of a table: their text, and what they leave of the ranges that a node owns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.primitives.token_ranges import MAXIMUM, MINIMUM, Span, TokenRange, spans
from cdc_common.errors.codes import CdcError
from cdc_common.node.snapshot_rows import RepairRequest
from publisher.commands.snapshot import portion_of
from publisher.snapshot.state.token_selection import (
    WHOLE,
    TokenSelection,
    parse,
    parse_tokens,
)

# Few and at the ends, so that ranges meet and wrap around.
TOKENS = st.sampled_from([MINIMUM, MINIMUM + 1, -7, -1, 0, 1, 8, MAXIMUM - 1, MAXIMUM])
SPANS = st.tuples(TOKENS, TOKENS).map(lambda pair: Span(*sorted(pair)))


@given(st.builds(TokenSelection, st.lists(SPANS, max_size=4).map(tuple), st.booleans(), st.none()))
def test_a_portion_is_read_from_its_text(portion: TokenSelection) -> None:
    assert parse(str(portion)) == portion


@given(st.integers(0, 2**62), st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4))
def test_a_repair_is_of_the_tokens_of_its_keys(until_ms: int, keys: list[bytes]) -> None:
    request = RepairRequest(until_ms, tuple(keys))
    portion = parse(str(request))
    assert portion.repair == request
    assert {first for first, _ in portion.tokens} == {decorated_token(key) for key in keys}
    assert parse(str(portion)) == portion


@pytest.mark.parametrize("text", ["repair:", "repair:1:xy", "repair:soon:00"])
def test_a_damaged_repair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid|non-hex"):
        parse(text)


@given(st.lists(st.builds(TokenRange, TOKENS, TOKENS)), st.lists(SPANS, min_size=1), TOKENS)
def test_the_tokens_of_a_portion_are_those_that_are_owned_too(
    owned: list[TokenRange], wanted: list[Span], token: int
) -> None:
    def has(found: list[Span]) -> bool:
        return any(span.first <= token <= span.last for span in found)

    assert has(spans(TokenSelection(tuple(wanted)).of(owned))) == (has(spans(owned)) and has(wanted))


def test_the_whole() -> None:
    owned = [TokenRange(5, 1)]
    assert WHOLE.of(owned) == owned
    assert str(WHOLE) == ""
    assert parse("") == WHOLE


def test_tokens_as_a_person_writes_them() -> None:
    assert parse_tokens(["-5", "1:9"]) == (Span(-5, -5), Span(1, 9))


@pytest.mark.parametrize("text", ["", "5:", ":5", "0x10", "9:1", "1:2:3", str(MAXIMUM + 1), str(MINIMUM - 1)])
def test_what_is_no_token_is_refused(text: str) -> None:
    options = {"snapshot": None, "tokens": ("1", text), "primary_range": False, "detach": False}
    with pytest.raises(CdcError, match=r"SELECT token\(KEY\)") as raised:
        portion_of(options)  # type: ignore[arg-type]
    assert repr(text) in str(raised.value)
