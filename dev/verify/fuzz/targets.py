"""Every public reader of cassandra_storage, of SSTables as files, of Avro and of joins: functions of bytes, with seeds.

A target may raise FormatError and nothing else, and asserts what must hold of whatever it could read.
"""

from __future__ import annotations

import json
import random
from functools import cache
from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.byte_comparable import bound_encoder, clustering_encoder, value_encoder
from cassandra_storage.formats.rows.clustering import ClusteringBound, Kind
from cassandra_storage.formats.rows.header import SerializationHeader
from cassandra_storage.formats.rows.mutation import only_table, read_mutation, split_mutation
from cassandra_storage.formats.rows.partition_update import read_partition_update
from cassandra_storage.formats.rows.unfiltered import read_row, write_row
from cassandra_storage.formats.schema.schema_rows import tables_from_rows
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.counter import merge_contexts, total
from cassandra_storage.formats.types.cql_types import UserTypeDefinition, parse_type, type_text
from cassandra_storage.formats.types.marshal import CqlType, decoder
from cassandra_storage.formats.versions import VERSION_40, VERSION_50, VERSION_3014
from dev.verify.fuzz.avro_targets import avro
from dev.verify.fuzz.component_targets import component_list, compression_info, sstable_index
from dev.verify.fuzz.join_targets import join, route
from dev.verify.fuzz.segment_targets import coded, descriptor, entry, index, section, segment
from dev.verify.fuzz.sstable_targets import cql_schema, sstable_files, sstable_name, sstable_rows, statistics, type_name
from dev.verify.fuzz.target import Target, first_mutations, is_read
from dev.verify.oracle.type_values import COMPARABLE, KEYSPACE, USER_TYPES, TypeValues
from tests.support.cassandra_storage.split_parts import joined
from tests.support.vectors.load import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from cassandra_storage.formats.rows.partition import PartitionUpdate

MESSAGING = (VERSION_3014, VERSION_40, VERSION_50)
TYPES = 200


def mutation() -> Target:
    """read_mutation and split_mutation refuse the same, and the parts are the whole."""
    tables, seeds = first_mutations()

    def run(data: bytes) -> bool:
        is_read(lambda: only_table(data))
        version = MESSAGING[len(data) % 3]
        try:
            split = split_mutation(data, version, tables)
        except FormatError:
            assert not is_read(lambda: read_mutation(data, version, tables))
            return False
        whole = read_mutation(data, version, tables)
        assert [table for table, _ in split] == [update.table for update in whole]
        for update, (table, parts) in zip(whole, split, strict=True):
            assert same(joined(parts, table, update.partition_key, version), update)
        return True

    return Target(run, seeds)


def same(joined_parts: PartitionUpdate, update: PartitionUpdate) -> bool:
    """A deletion that deletes nothing is no part."""
    return joined_parts._replace(deletion=update.deletion) == update and (
        joined_parts.deletion == update.deletion or update.deletion.is_live
    )


def update() -> Target:
    tables, seeds = first_mutations()
    ids = sorted(tables)

    def run(data: bytes) -> bool:
        """The first byte chooses the table, so that damage is never just an unknown one."""
        rest = ids[data[0] % len(ids)] + data[1:] if data else data
        return is_read(lambda: read_partition_update(rest, 0, MESSAGING[len(data) % 3], tables))

    return Target(run, [bytes((ids.index(seed[1:17]),)) + seed[17:] for seed in seeds if seed[0] == 1])


def row() -> Target:
    """The first byte chooses the table and the messaging version."""
    tables, mutations = first_mutations()
    headers = [
        (table, SerializationHeader.of_table(table, messaging_version=version))
        for table in sorted(tables.values(), key=lambda table: table.id)
        if table.keyspace == "vectors"
        for version in MESSAGING
    ]

    def run(data: bytes) -> bool:
        _, header = headers[data[0] % len(headers)] if data else headers[0]
        is_read(lambda: read_row(data, 1, header, is_static=True))
        return is_read(lambda: read_row(data, 1, header))

    seeds = []
    for mutation in mutations:
        for update in read_mutation(mutation, VERSION_40, tables):
            for number, (table, header) in enumerate(headers):
                if update.table is table and not table.dropped_columns:
                    seeds += [bytes((number,)) + write_row(row, header) for row in update.rows]
    return Target(run, sorted(set(seeds), key=len)[::5])


@cache
def _types() -> list[tuple[CqlType, list[bytes]]]:
    """Types and some values of each."""
    drawn = []
    for number in range(TYPES):
        values = TypeValues(random.Random(number), is_plain=number % 2 == 0)
        type_ = values.type(depth=3)
        drawn.append((type_, [values.value(type_) for _ in range(5)]))
    return drawn


def value() -> Target:
    """The first byte chooses the type."""
    types = [(decoder(type_), value_encoder(type_)) for type_, _ in _types()]

    def run(data: bytes) -> bool:
        if not data:
            return False
        decode, encode = types[data[0] % TYPES]
        content = data[1:]
        is_read(lambda: encode(content))
        return is_read(lambda: decode(content))

    return Target(run, [bytes((i,)) + value for i, (_, values) in enumerate(_types()) for value in values])


def clustering() -> Target:
    """Keys of clusterings and bounds of arbitrary values: the first byte chooses the columns, and each value is behind
    its length.
    """
    encoders = []
    for number in range(64):
        values = TypeValues(random.Random(number), is_plain=False)
        columns = tuple(
            ColumnMetadata(f"c{i}", values.type(COMPARABLE, 1), ColumnKind.CLUSTERING, i, is_reversed=i % 2 == 1)
            for i in range(1 + number % 3)
        )
        encoders.append((clustering_encoder(columns), bound_encoder(columns)))

    def run(data: bytes) -> bool:
        encode, encode_bound = encoders[data[0] % 64] if data else encoders[0]
        values, at = [], 1
        while at < len(data):
            size = data[at]
            values.append(None if size == 0xFF else data[at + 1 : at + 1 + size])
            at += 1 + size
        bound = ClusteringBound(Kind(len(data) % 8), tuple(values))
        is_read(lambda: encode_bound(bound))
        return is_read(lambda: encode(tuple(values)))

    seeds = []
    for number in range(64):
        values = TypeValues(random.Random(number), is_plain=False)
        drawn = [values.value(values.type(COMPARABLE, 1))[:254] for _ in range(1 + number % 3)]
        seeds.append(bytes((number,)) + b"".join(bytes((len(value),)) + value for value in drawn))
    return Target(run, seeds)


def counter() -> Target:
    """Two contexts, the first byte being the first one's length."""

    def run(data: bytes) -> bool:
        left, right = (data[1 : 1 + data[0]], data[1 + data[0] :]) if data else (data, data)
        is_read(lambda: merge_contexts(left, right))
        return is_read(lambda: total(left))

    shard = bytes(16) + b"\0\0\0\0\0\0\0\1" * 2
    contexts = (b"\0\0" + shard, b"\0\1\0\0" + shard, b"\0\1\x80\0" + shard, b"\xff\xff\0\0" + shard * 2)
    return Target(run, [bytes((len(left),)) + left + right for left in contexts for right in contexts])


def cql_type() -> Target:
    """A text, and in what follows a zero byte the fields of a user type that it may name."""

    def run(data: bytes) -> bool:
        text, *fields = data.decode("utf-8", "replace").split("\0")
        user_types = {
            **USER_TYPES,
            "u": UserTypeDefinition(KEYSPACE, "u", tuple(map(str, range(len(fields)))), (*fields,)),
        }
        try:
            type_ = parse_type(text, KEYSPACE, user_types)
        except FormatError:
            return False
        assert parse_type(type_text(type_), KEYSPACE, user_types) == type_
        return True

    texts = [type_text(type_) for type_, _ in _types()]
    texts += ["u\0frozen<map<text, point>>\0list<int>", "list<frozen<u>>\0vector<float, 3>", "u\0u", '"Odd name"']
    return Target(run, [text.encode() for text in texts])


def schema_rows() -> Target:
    """Rows of system_schema as JSON, damaged as text. A value of another type than its column's stands for null: no
    driver gives it.
    """
    names = ("tables", "columns", "types", "dropped_columns")
    schema = json.loads((FOLDER / "5.0" / "expected.json").read_text())["schema"]
    types = {name: {type(row[name]) for of in names for row in schema[of] if name in row} for name in _names(schema)}

    def row_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: value if type(value) in types.get(name, ()) else None for name, value in pairs}

    def run(data: bytes) -> bool:
        try:
            rows = json.loads(data, object_pairs_hook=row_of)
        except (ValueError, RecursionError):
            return False
        if not isinstance(rows, list) or len(rows) != 4:
            return False
        typed = [[row for row in of if isinstance(row, dict)] if isinstance(of, list) else [] for of in rows]
        for row in typed[3]:
            row["dropped_time"] = len(data) if row.get("dropped_time") else None
        return is_read(lambda: tables_from_rows(*typed))

    def seed(table: str) -> bytes:
        return json.dumps(
            [[row for row in schema[of] if row.get("table_name", table) == table] for of in names]
        ).encode()

    return Target(run, [seed(row["table_name"]) for row in schema["tables"] if row["keyspace_name"] == "vectors"])


def _names(schema: dict[str, list[dict[str, object]]]) -> set[str]:
    return {name for rows in schema.values() for row in rows for name in row}


TARGETS: dict[str, Callable[[], Target]] = {
    target.__name__: target
    for target in (
        mutation,
        update,
        row,
        segment,
        section,
        coded,
        entry,
        descriptor,
        index,
        value,
        clustering,
        counter,
        cql_type,
        schema_rows,
        sstable_rows,
        sstable_files,
        sstable_name,
        statistics,
        compression_info,
        component_list,
        sstable_index,
        type_name,
        cql_schema,
        avro,
        route,
        join,
    )
}
