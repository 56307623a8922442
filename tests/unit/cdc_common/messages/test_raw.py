from __future__ import annotations

import contextlib
import json
import re
from copy import deepcopy
from dataclasses import asdict, replace
from io import BytesIO
from typing import get_args

import pytest
from avro.schema import parse as avro_parse
from fastavro import schemaless_reader
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages import raw, wire
from cdc_common.messages.errors import MessageError, NextVersionError
from cdc_common.messages.raw import RawMessage
from dev.local_stack.process.paths import project_root
from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.parsing import parse

LONG = st.integers(-(2**63), 2**63 - 1)
INT = st.integers(-(2**31), 2**31 - 1)
SIXTEEN = st.binary(min_size=16, max_size=16)
MESSAGES = st.builds(
    RawMessage,
    kind=st.sampled_from(
        [*get_args(raw.LogKind), *get_args(raw.SnapshotKind), *get_args(raw.TruncationKind), *get_args(raw.RepairKind)]
    ),
    update=st.binary(),
    messaging_version=INT,
    table_id=SIXTEEN,
    schema_digest=SIXTEEN,
    truncation_epoch=LONG,
    host_id=SIXTEEN,
    segment=LONG,
    file=st.text(),
    position=LONG,
    index=INT,
    published_up_to_segment=LONG,
    published_up_to_position=LONG,
    clock=LONG,
)
EXAMPLE = RawMessage(
    "row", b"update", 12, b"t" * 16, b"d" * 16, 0, b"h" * 16, 1_700_000_000_000, "CommitLog-7-1.log", 4096, 0
)


@given(MESSAGES, st.integers(0, 2**32 - 1))
def test_round_trip(message: RawMessage, schema_id: int) -> None:
    data = raw.encode(message, schema_id)
    assert raw.decode(data) == message
    assert wire.schema_id(data) == schema_id


@given(MESSAGES, st.data())
def test_truncated(message: RawMessage, data: st.DataObject) -> None:
    encoded = raw.encode(message, 1)
    size = data.draw(st.integers(0, len(encoded) - 1))
    with pytest.raises(MessageError):
        raw.decode(encoded[:size])


@given(MESSAGES, st.data())
def test_damaged_bytes_raise_message_error_or_give_a_message(message: RawMessage, data: st.DataObject) -> None:
    encoded = bytearray(raw.encode(message, 1))
    encoded[data.draw(st.integers(0, len(encoded) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(MessageError):
        assert isinstance(raw.decode(bytes(encoded)), RawMessage)


@given(st.binary())
def test_arbitrary_bytes(data: bytes) -> None:
    with pytest.raises(MessageError):
        raw.decode(data)


def test_bytes_after_the_end() -> None:
    with pytest.raises(MessageError, match="after its end"):
        raw.decode(raw.encode(EXAMPLE, 1) + b"x")


def test_unknown_format_version() -> None:
    data = bytearray(raw.encode(EXAMPLE, 1))
    data[wire.HEADER_SIZE] = 4 << 1
    with pytest.raises(NextVersionError, match="raw message has format version 4; this build reads 1 and 2 and 3"):
        raw.decode(bytes(data))


@given(MESSAGES)
def test_each_kind_is_written_in_the_first_version_that_has_it(message: RawMessage) -> None:
    """A build that reads only version 1 reads the log's messages, and stops at all others."""
    version = raw.encode(message, 1)[wire.HEADER_SIZE] >> 1
    is_truncation = message.kind in raw.TRUNCATION_KINDS
    is_of_three = is_truncation or message.kind in raw.REPAIR_KINDS
    assert version == (3 if is_of_three else 2 if message.kind.startswith("snapshot_") else 1)
    assert raw.is_truncation(raw.encode(message, 1)) == is_truncation


@given(MESSAGES)
def test_a_kind_has_one_version(message: RawMessage) -> None:
    data = bytearray(raw.encode(message, 1))
    data[wire.HEADER_SIZE] = {2: 4, 4: 6, 6: 2}[data[wire.HEADER_SIZE]]
    with pytest.raises(MessageError, match="damaged raw message"):
        raw.decode(bytes(data))


def test_the_schema_reads_what_the_former_one_wrote() -> None:
    """RAW_SCHEMA evolves: its fields stay, and its enum grows at the end."""
    kinds = next(field["type"]["symbols"] for field in raw.RAW_SCHEMA["fields"] if field["name"] == "kind")
    former = deepcopy(raw.RAW_SCHEMA)
    next(field for field in former["fields"] if field["name"] == "kind")["type"]["symbols"] = kinds[:-2]
    assert not conflicts(Level.BACKWARD, parse(json.dumps(raw.RAW_SCHEMA)), [(1, parse(json.dumps(former)))])


def test_any_avro_reader_reads_it() -> None:
    avro_parse(json.dumps(raw.RAW_SCHEMA))
    for message, version in (
        (EXAMPLE, 1),
        (replace(EXAMPLE, kind="snapshot_end"), 2),
        (replace(EXAMPLE, kind="drop"), 3),
    ):
        record = schemaless_reader(BytesIO(raw.encode(message, 1)[wire.HEADER_SIZE :]), raw.RAW_SCHEMA, None)
        assert record == {**asdict(message), "format_version": version}


def test_the_documentation_lists_every_field_and_kind() -> None:
    page = (project_root() / "docs" / "reference" / "raw-topics.md").read_text()
    table = page.partition("## Raw messages")[2].partition("### ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")][2:]
    assert [name for row in rows for name in row[0].split(", ")] == [
        field["name"] for field in raw.RAW_SCHEMA["fields"]
    ]
    (kinds,) = (row[2] for row in rows if row[0] == "kind")
    for version, named in re.findall(r"ersion (\d): ([a-z_, ]+)", kinds):
        assert named.split(", ") == list(raw._KINDS_BY_VERSION[int(version)])
