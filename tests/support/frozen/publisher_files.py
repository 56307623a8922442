"""Frozen vectors of the files in a publisher's state directory, each written and read by its own class."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from cassandra_storage.formats.commitlog.segment import CommitLogPosition
from cassandra_storage.formats.primitives.token_ranges import Span
from cassandra_storage.formats.sstable.merge import MergePosition
from cdc_common.messages import tables
from publisher import state_files
from publisher.inflight import PendingPosition
from publisher.log.position import Positions
from publisher.mutations.messages import Origin
from publisher.mutations.quarantine import Quarantine, SentGap
from publisher.snapshot.state.records import Record, Records
from publisher.snapshot.state.token_selection import TokenSelection
from publisher.tables.node_schema import NodeSchema
from publisher.tables.row_ends import RowsEnd
from publisher.topics.raw_topics import RegistryIds
from tests.support.frozen.messages import HOST, KEY, OTHER, TABLES, WRITTEN_US
from tests.support.frozen.vectors import Format, Vector, plain
from tests.support.materializer.raw_builder import int_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

SEGMENT = 1_794_999_000_000
TABLE = replace(TABLES["orders"], cdc=True)
ORIGIN = Origin(HOST, SEGMENT, f"CommitLog-7-{SEGMENT}.log", 12, 4096)
GAPS = [SentGap(TABLE.id.bytes, KEY), SentGap(TABLE.id.bytes, b"")]
MUTATION, REASON = b"\x00mutation", "an unknown column"
QUARANTINED = {"origin": plain(ORIGIN), "mutation": MUTATION.hex(), "reason": REASON, "gaps": plain(GAPS)}
RECORD = Record(
    UUID(int=0x5A),
    "shop",
    "orders",
    TABLE.id.bytes.hex(),
    (UUID(bytes=HOST), UUID(bytes=OTHER)),
    TokenSelection((Span(-100, 100),), is_primary=True),
    "sending",
    now=WRITTEN_US // 1_000_000,
    flushed_to=(SEGMENT, 4096),
    flushed_at=1.5,
    truncated_at=7,
    place=MergePosition(-42, KEY, (int_bytes(1), None)),
    started=WRITTEN_US,
    rows=10,
    bytes=2000,
    partitions=3,
    done=0.25,
    file_bytes=9000,
    requested_at=1.0,
    sending_at=2.0,
    changed_at=3.0,
    problem="waits for the materializer",
    is_mark_cleared=True,
    own_flushed_to=(SEGMENT, 99),
)
URL, SUBJECT, SCHEMA_ID = "http://127.0.0.1:8081", "cdc.raw.shop.orders-value", 7
POSITIONS = {"begun": {str(SEGMENT + 1): 2048}, "published_up_to": [SEGMENT + 1, 2048], "clock": WRITTEN_US}
END = RowsEnd("truncate", CommitLogPosition(SEGMENT, 77), WRITTEN_US // 1000, WRITTEN_US)


def make() -> list[Vector]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        positions = Positions(folder / "position.json", UUID(bytes=HOST))
        positions.move(
            [PendingPosition(SEGMENT, 8192, is_end=True), PendingPosition(SEGMENT + 1, 2048, clock=WRITTEN_US)]
        )
        positions.save()
        Quarantine(folder / "quarantine", 10, 1 << 20).store(ORIGIN, MUTATION, REASON, GAPS)
        records = Records(folder)
        records.make_folder()
        records.write(RECORD)
        records.want(RECORD.name, "pause")
        _schema_with_content(folder / "schema.json")._save()
        state_files.write(
            folder / "registry.json", {**_registry_ids(folder / "none")._source, "ids": {SUBJECT: SCHEMA_ID}}
        )
        state_files.write(folder / "spool.json", {"folder": "/var/spool/cdc"})
        [mutation] = (folder / "quarantine").iterdir()
        [record], [wanted] = records.folder.glob("*.json"), records.folder.glob("*.wanted")
        return [
            Vector("position", (folder / "position.json").read_bytes(), {**POSITIONS, "finished": [SEGMENT]}),
            Vector("quarantine", mutation.read_bytes(), QUARANTINED),
            Vector("snapshot record", record.read_bytes(), plain(RECORD)),
            Vector("snapshot wanted", wanted.read_bytes(), "pause"),
            Vector(
                "schema", (folder / "schema.json").read_bytes(), _schema_meaning(_schema_with_content(folder / "other"))
            ),
            Vector("registry ids", (folder / "registry.json").read_bytes(), SCHEMA_ID),
            Vector("spool", (folder / "spool.json").read_bytes(), "/var/spool/cdc"),
        ]


def read(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    with tempfile.TemporaryDirectory() as folder:
        return _READERS[name](Path(folder), data[name])


def _read_position(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    file = folder / "position.json"
    file.write_bytes(data)
    found = Positions.load(file, UUID(bytes=HOST))
    return {
        "begun": {str(SEGMENT + 1): found.resume_at(SEGMENT + 1)},
        "finished": found.finished_from(0),
        "published_up_to": list(found.published_up_to),
        "clock": found.clock,
    }


def _read_quarantine(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    (folder / "mutation.json").write_bytes(data)
    [found] = Quarantine(folder, 10, 1 << 20).read_all()
    assert found.quarantined_at
    return {
        "origin": plain(found.origin),
        "mutation": found.mutation.hex(),
        "reason": found.reason,
        "gaps": plain(found.gaps),
    }


def _read_record(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    records = Records(folder)
    records.make_folder()
    (records.folder / f"{RECORD.name}.json").write_bytes(data)
    return plain(records.read(RECORD.name))


def _read_wanted(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    records = Records(folder)
    records.make_folder()
    (records.folder / f"{RECORD.name}.wanted").write_bytes(data)
    return records.wanted(RECORD.name)


def _read_schema(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    (folder / "schema.json").write_bytes(data)
    schema = _schema(folder / "schema.json")
    schema.load()
    return _schema_meaning(schema)


def _read_registry_ids(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    (folder / "registry.json").write_bytes(data)
    return _registry_ids(folder / "registry.json").schema_id(SUBJECT)


def _read_spool(folder: Path, data: bytes) -> Any:  # noqa: ANN401 - JSON
    (folder / "spool.json").write_bytes(data)
    return (state_files.read(folder / "spool.json") or {})["folder"]


_READERS = {
    "position": _read_position,
    "quarantine": _read_quarantine,
    "snapshot record": _read_record,
    "snapshot wanted": _read_wanted,
    "schema": _read_schema,
    "registry ids": _read_registry_ids,
    "spool": _read_spool,
}


def _no_registry() -> Any:  # noqa: ANN401 - a registry
    raise AssertionError("the id is in the file")


def _registry_ids(file: Path) -> RegistryIds:
    return RegistryIds(file, URL, _no_registry)


def _schema(file: Path) -> NodeSchema:
    def run_query(*_: object) -> Any:  # noqa: ANN401 - rows
        raise AssertionError("nothing is asked of the node")

    return NodeSchema(file, run_query, ("cdc", "filler"))


def _schema_with_content(file: Path) -> NodeSchema:
    """A table, and one of everything that is stored beside it."""
    schema = _schema(file)
    table_id = TABLE.id.bytes
    schema.marks.load({"need_snapshot": {table_id.hex(): WRITTEN_US}, "requested": {table_id.hex(): WRITTEN_US + 1}})
    schema.switches.load({table_id.hex(): [SEGMENT, 4096, SEGMENT + 1, WRITTEN_US]})
    schema._dropped_columns.load({table_id.hex(): {"old": True}})
    times: dict[str, Any] = {name: {table_id.hex(): WRITTEN_US // 1000} for name in ("truncated", "dropped", "sent")}
    places = {table_id.hex(): [*END.position]}
    pending = {table_id.hex(): [END.kind, *END.position, END.at, END.noticed_at]}
    schema.row_ends.load({**times, "truncated_places": places, "pending": pending})
    schema._set_tables({table_id: TABLE})
    return schema


def _schema_meaning(schema: NodeSchema) -> Any:  # noqa: ANN401 - JSON
    return {
        "tables": {table_id.hex(): json.loads(tables.to_json(table)) for table_id, table in schema.tables.items()},
        "cdc": [table.cdc for table in schema.tables.values()],
        **schema.marks.to_json(),
        "switched_off": schema.switches.to_json(),
        "dropped_columns": schema._dropped_columns.to_json(),
        "row_ends": schema.row_ends.to_json(),
        "were_published": sorted(table_id.hex() for table_id in schema._were_published),
    }


FORMATS = (Format("publisher-files", ("publisher/state_files.py",), make, read),)
