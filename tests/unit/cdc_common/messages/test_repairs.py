"""The steps that frame a repair."""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages.errors import MessageError, NextVersionError
from cdc_common.messages.raw import RawMessage
from cdc_common.messages.repairs import RepairStep, decode_step, encode_step, file_name, is_repair_image
from cdc_common.messages.snapshots import HOST_STATES
from cdc_common.messages.snapshots import file_name as snapshot_file

HOST = bytes(range(16))
PLACES = st.integers(0, 2**63 - 1)
STEPS = st.builds(
    RepairStep,
    st.uuids(),
    st.lists(st.binary(min_size=16, max_size=16), min_size=1, max_size=3).map(tuple),
    PLACES,
    st.sampled_from(HOST_STATES),
    st.tuples(PLACES, PLACES),
)


@given(STEPS)
def test_round_trip(step: RepairStep) -> None:
    assert decode_step(encode_step(step)) == step


@given(STEPS, st.data())
def test_damaged_bytes_raise_message_error_or_give_a_step(step: RepairStep, data: st.DataObject) -> None:
    encoded = bytearray(encode_step(step))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(MessageError):
        assert isinstance(decode_step(bytes(encoded)), RepairStep)


@pytest.mark.parametrize(
    "change",
    [
        {"hosts": []},
        {"hosts": ["x"]},
        {"hosts": None},
        {"state": "paused"},
        {"repair": 7},
        {"until_ms": "soon"},
        {"flushed_to": [1]},
        {"flushed_to": 1},
    ],
    ids=str,
)
def test_what_is_no_step(change: dict[str, object]) -> None:
    content = json.loads(encode_step(RepairStep(UUID(int=1), (HOST,), 5))) | change
    with pytest.raises(MessageError, match="damaged repair step"):
        decode_step(json.dumps(content).encode())


def test_the_next_version() -> None:
    content = json.loads(encode_step(RepairStep(UUID(int=1), (HOST,), 5))) | {"format_version": 2}
    with pytest.raises(NextVersionError):
        decode_step(json.dumps(content).encode())


def test_the_documentations_step_is_of_this_format() -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "raw-topics.md"
    (step,) = re.findall(r'`({"format_version": 1, "repair".*?})`', page.read_text())
    assert decode_step(step.encode()).state == "ended"


def test_an_image_of_a_repair_is_told_by_its_file() -> None:
    repair = UUID(int=1)
    image = RawMessage("snapshot_row", b"", 12, HOST, HOST, 0, HOST, 1, file_name(repair), 0, 0)
    assert is_repair_image(image)
    assert not is_repair_image(replace(image, file=snapshot_file(repair)))
    assert not is_repair_image(replace(image, kind="row"))
