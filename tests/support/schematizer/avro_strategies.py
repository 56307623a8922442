"""Hypothesis strategies for Avro schemas, small and from few names, so that two of them often fit each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMES = ("A", "B", "C")
SYMBOLS = ("X", "Y", "Z")
NAMESPACES = ("n", "n.m", "")

primitives = st.sampled_from(PRIMITIVES)
names = st.sampled_from(NAMES)
references = st.sampled_from((*NAMES, "n.A", "n.m.B"))
aliases = st.lists(st.sampled_from((*NAMES, "n.A", "n.m.B")), max_size=1)
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**33), 2**33),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from(("", "X", "ü")),
    st.just([]),
    st.just({}),
    st.just({"a": 1}),
)
logical = st.fixed_dictionaries({"type": st.just("long"), "logicalType": st.sampled_from(("timestamp-millis", "odd"))})


def _with(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


def named(type_: str, **required: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _with(
        {"type": st.just(type_), "name": names, **required},
        {"namespace": st.sampled_from(NAMESPACES), "aliases": aliases, "doc": st.just("what it is")},
    )


def _field(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return _with(
        {"name": st.sampled_from(("a", "b")), "type": inner},
        {"default": values, "aliases": st.lists(st.sampled_from(("a", "b", "c")), max_size=1), "zz": values},
    )


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        _with({"type": st.just("array"), "items": inner}, {}),
        _with({"type": st.just("map"), "values": inner}, {}),
        st.lists(inner, max_size=3),
        named("record", fields=st.lists(_field(inner), max_size=3)),
        named("record", fields=st.lists(_field(inner), min_size=1, max_size=2, unique_by=lambda field: field["name"])),
    )


_leaves = st.one_of(
    primitives,
    primitives,
    logical,
    references,
    named("enum", symbols=st.lists(st.sampled_from(SYMBOLS), max_size=3)).flatmap(
        lambda enum: st.sampled_from([enum, {**enum, "default": "X"}])
    ),
    named("fixed", size=st.integers(1, 2)),
)

maybe_schemas = st.recursive(_leaves, _containers, max_leaves=6)
"""Most are Avro schemas; some define a name twice, refer to none, or have a wrong default."""

PROMOTIONS = {
    "int": ("long", "float", "double"),
    "long": ("float", "double", "int"),
    "float": ("double", "int"),
    "string": ("bytes",),
    "bytes": ("string",),
}


Schema = Any
"""A schema as JSON has it."""


@st.composite
def evolved(draw: st.DrawFn, schema: Schema) -> Schema:
    """A schema that has to do with this one: as it is, promoted, in a union, with fields more or less, renamed …"""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from([["null", schema], [schema, "string"], schema])) if _is_branch(schema) else schema
    if isinstance(schema, list):
        return draw(st.permutations(schema)) if draw(st.booleans()) else schema[:1] + schema[2:]
    if isinstance(schema, str):
        return draw(st.sampled_from((schema, *PROMOTIONS.get(schema, ()))))
    change = _CHANGES.get(schema["type"])
    return schema if change is None else schema | draw(change(schema))


def _is_branch(schema: Schema) -> bool:
    return not isinstance(schema, list) and schema not in ("null", "string")


@st.composite
def _changed_record(draw: st.DrawFn, schema: Schema) -> Schema:
    fields = [{**field, "type": draw(evolved(field["type"]))} for field in schema["fields"]]
    match draw(st.integers(0, 5)):
        case 0:
            fields = fields[1:]
        case 1:
            fields.append({"name": "added", "type": "int"} | draw(st.sampled_from([{}, {"default": 1}])))
        case 2 if fields:
            fields[0] = {**fields[0], "name": "renamed", "aliases": draw(st.sampled_from([["a"], ["b"]]))}
        case 3:
            full = f"{schema.get('namespace', '')}.{schema['name']}".strip(".")
            return {"name": "Renamed", "fields": fields, "aliases": [draw(st.sampled_from([full, schema["name"]]))]}
    return {"fields": fields}


@st.composite
def _changed_enum(draw: st.DrawFn, _schema: Schema) -> Schema:
    symbols = draw(st.lists(st.sampled_from(SYMBOLS), unique=True, min_size=1))
    return {"symbols": symbols} | draw(st.sampled_from([{}, {"default": symbols[0]}]))


_CHANGES: dict[str, Callable[[Schema], st.SearchStrategy[Schema]]] = {
    "record": _changed_record,
    "enum": _changed_enum,
    "array": lambda schema: st.fixed_dictionaries({"items": evolved(schema["items"])}),
    "map": lambda schema: st.fixed_dictionaries({"values": evolved(schema["values"])}),
    "fixed": lambda _: st.fixed_dictionaries({"size": st.integers(1, 2)}),
}
