"""The numbers and types of a table's columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archive.writer.columns import BASE_COLUMNS, NO_COLUMNS, Columns, IncompatibleError, NotInTableError, stored_schema

SCALARS = [
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.bool_(),
    pa.decimal128(9, 2),
]


def kinds() -> st.SearchStrategy[pa.DataType]:
    return st.recursive(
        st.sampled_from(SCALARS),
        lambda inner: st.one_of(
            inner.map(pa.list_),
            inner.map(lambda kind: pa.map_(pa.string(), kind)),
            st.lists(inner, min_size=1, max_size=3).map(
                lambda found: pa.struct([pa.field(f"f{number}", kind) for number, kind in enumerate(found)])
            ),
        ),
        max_leaves=6,
    )


def schemas() -> st.SearchStrategy[pa.Schema]:
    names = st.lists(st.sampled_from("abcdef"), unique=True, min_size=1, max_size=4)
    return names.flatmap(
        lambda found: st.tuples(*[kinds() for _ in found]).map(lambda made: pa.schema(zip(found, made, strict=True)))
    )


def numbers(columns: Columns, schema: pa.Schema) -> set[int]:
    found: set[int] = set()

    def walk(field: pa.Field) -> None:
        found.add(int(field.metadata[b"PARQUET:field_id"]))
        kind = field.type
        if pa.types.is_struct(kind):
            for inner in kind:
                walk(inner)
        elif pa.types.is_map(kind):
            walk(kind.key_field)
            walk(kind.item_field)
        elif pa.types.is_list(kind):
            walk(kind.value_field)

    for field in columns.numbered(schema):
        walk(field)
    return found


@given(schemas(), schemas())
def test_numbers_never_change(first: pa.Schema, second: pa.Schema) -> None:
    before = BASE_COLUMNS.merged(first)
    assert numbers(before, first) == set(range(BASE_COLUMNS.last_id + 1, before.last_id + 1))
    assert before.merged(first) == before
    assert Columns.from_json(before.as_json()) == before
    try:
        after = before.merged(second)
    except IncompatibleError:
        return
    assert numbers(after, first) == numbers(before, first)
    assert after.merged(first).fields == after.fields


@pytest.mark.parametrize(
    ("known", "wanted", "type_after"),
    [
        (pa.int32(), pa.int64(), "long"),
        (pa.int64(), pa.int32(), "long"),
        (pa.float32(), pa.float64(), "double"),
        (pa.decimal128(5, 2), pa.decimal128(9, 2), "decimal(9, 2)"),
        (pa.decimal128(9, 2), pa.decimal128(5, 2), "decimal(9, 2)"),
    ],
)
def test_a_column_becomes_wider(known: pa.DataType, wanted: pa.DataType, type_after: str) -> None:
    columns = NO_COLUMNS.merged(pa.schema([("a", known)])).merged(pa.schema([("a", wanted)]))
    assert columns.fields[0]["type"] == type_after
    assert columns.last_id == 1


@pytest.mark.parametrize(
    ("known", "wanted"),
    [
        (pa.int32(), pa.string()),
        (pa.int64(), pa.float64()),
        (pa.decimal128(5, 2), pa.decimal128(9, 3)),
        (pa.list_(pa.int32()), pa.int32()),
        (pa.struct([("x", pa.int32())]), pa.struct([("x", pa.string())])),
    ],
)
def test_what_does_not_fit_is_named(known: pa.DataType, wanted: pa.DataType) -> None:
    columns = NO_COLUMNS.merged(pa.schema([("a", known)]))
    with pytest.raises(IncompatibleError, match="the field a"):
        columns.merged(pa.schema([("a", wanted)]))


def test_a_record_without_fields_is_in_no_table() -> None:
    with pytest.raises(NotInTableError):
        stored_schema(pa.schema([("a", pa.struct([]))]))


def renamed(name: str, *aliases: str, kind: pa.DataType | None = None) -> pa.Field:
    return pa.field(name, kind or pa.int64(), metadata={b"aliases": ",".join(aliases).encode()} if aliases else None)


def test_a_renamed_column_keeps_its_number() -> None:
    before, after = pa.schema([renamed("a"), renamed("b")]), pa.schema([renamed("c", "a"), renamed("b")])
    columns = NO_COLUMNS.merged(before).merged(after)
    assert [(field["id"], field["name"], field.get("former")) for field in columns.fields] == [
        (1, "c", ["a"]),
        (2, "b", None),
    ]
    assert numbers(columns, before) == numbers(columns, after) == {1, 2}
    assert columns.merged(before) == columns.merged(after) == columns
    assert columns.names() == {1: {"a", "c"}, 2: {"b"}}
    assert [field["name"] for field in columns.as_iceberg()] == ["c", "b"]
    assert all("former" not in field for field in columns.as_iceberg())


def test_a_new_column_with_a_former_name() -> None:
    columns = NO_COLUMNS.merged(pa.schema([renamed("a")])).merged(pa.schema([renamed("c", "a")]))
    both = columns.merged(pa.schema([renamed("c", "a"), renamed("a", kind=pa.string())]))
    assert [(field["id"], field["name"]) for field in both.fields] == [(1, "c"), (2, "a")]


def test_a_nested_field_is_renamed() -> None:
    def record(field: pa.Field) -> pa.Schema:
        return pa.schema([pa.field("l", pa.list_(pa.struct([field])))])

    columns = NO_COLUMNS.merged(record(renamed("a"))).merged(record(renamed("c", "a", kind=pa.int32())))
    assert columns.names() == {1: {"l"}, 2: {"element"}, 3: {"a", "c"}}
    assert columns.last_id == 3
