"""The steps that frame a snapshot."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages.errors import MessageError, NextVersionError
from cdc_common.messages.snapshots import HOST_STATES, SnapshotStep, decode_step, encode_step, file_name

HOST = bytes(range(16))
STEPS = st.builds(
    SnapshotStep,
    st.uuids(),
    st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=3).map(tuple),
    st.sampled_from(HOST_STATES),
)


@given(STEPS)
def test_round_trip(step: SnapshotStep) -> None:
    assert decode_step(encode_step(step)) == step


@given(STEPS, st.data())
def test_damaged_bytes_raise_message_error_or_give_a_step(step: SnapshotStep, data: st.DataObject) -> None:
    encoded = bytearray(encode_step(step))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(MessageError):
        assert isinstance(decode_step(bytes(encoded)), SnapshotStep)


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": []},
        {"hosts": ["x"]},
        {"hosts": 5},
        {"hosts": None},
        {"state": "paused"},
        {"snapshot": 7},
        {"state": []},
    ],
    ids=str,
)
def test_what_is_no_step(change: dict[str, object]) -> None:
    content = json.loads(encode_step(SnapshotStep(UUID(int=1), (HOST,)))) | change
    with pytest.raises(MessageError, match="damaged snapshot step"):
        decode_step(json.dumps(content).encode())


def test_the_next_version() -> None:
    content = json.loads(encode_step(SnapshotStep(UUID(int=1), (HOST,)))) | {"format_version": 2}
    with pytest.raises(NextVersionError):
        decode_step(json.dumps(content).encode())


def test_the_documentations_step_is_of_this_format() -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "raw-topics.md"
    (step,) = re.findall(r'`({"format_version": 1, "hosts".*?})`', page.read_text())
    found = decode_step(step.encode())
    assert found.state == "running"
    assert file_name(found.snapshot).removeprefix("snapshot-") in step
