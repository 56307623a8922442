"""Any record or envelope, any steps: the target decodes under its schema, and is what the steps say.

fastavro writes the source and reads both. What is expected is worked out on its values, not on bytes.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_common.messages.avro.encoding import encode_long, encode_string
from cdc_common.messages.avro.schemas import from_tree, to_tree
from tests.support.transformer.orders import decode, encode
from transformer.definition import EnumStep, FlagsStep, MaskStep, Transformer
from transformer.errors import TransformError
from transformer.steps.derive import Derived, SourceTopic, derive
from transformer.steps.rewrite import IS_NATIVE

if IS_NATIVE:
    from cdc_native.avro.messages import AvroError, Messages

SALT = "salt"
SHARED = {
    "type": "record",
    "name": "Shared",
    "namespace": "other",
    "fields": [{"name": "a", "type": "int"}, {"name": "more", "type": ["null", "Shared"], "default": None}],
}


class Typed(NamedTuple):
    """A type, and its values."""

    schema: Any
    values: st.SearchStrategy[Any]


INT, LONG = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
FLAT = {"type": "record", "name": "Flat", "namespace": "other", "fields": [{"name": "a", "type": "int"}]}
SHARED_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda a: {"a": a, "more": None}, INT),
    lambda inner: st.builds(lambda a, more: {"a": a, "more": more}, INT, inner),
    max_leaves=3,
)
SIMPLE = st.sampled_from(
    [
        Typed("boolean", st.booleans()),
        Typed("int", INT),
        Typed("long", LONG),
        Typed("float", st.floats(width=32, allow_nan=False)),
        Typed("double", st.floats(allow_nan=False)),
        Typed("bytes", st.binary(max_size=200)),
        Typed("string", st.text(max_size=200)),
        Typed({"type": "int", "cqlType": "smallint"}, INT),
        Typed(SHARED, SHARED_VALUES),
    ]
)


def nested(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda of: Typed({"type": "array", "items": of.schema}, st.lists(of.values, max_size=3))),
        inner.map(
            lambda of: Typed(
                {"type": "map", "values": of.schema}, st.dictionaries(st.text(max_size=5), of.values, max_size=3)
            )
        ),
    )


def may_be_null(of: Typed) -> st.SearchStrategy[Typed]:
    values = st.none() | of.values
    return st.sampled_from(
        [of, Typed(["null", of.schema], values), Typed([of.schema, "null"], values)],
    )


TYPES = st.recursive(SIMPLE, nested, max_leaves=3).flatmap(may_be_null)


class Case(NamedTuple):
    """A source and its rows; the columns are c0, c1, …"""

    schema: Any
    is_envelope: bool
    columns: list[Any]
    rows: list[dict[str, Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    typed = draw(st.lists(TYPES, min_size=1, max_size=6))
    fields = [{"name": f"c{number}", "type": column.schema} for number, column in enumerate(typed)]
    row = {"type": "record", "name": "Row", "fields": fields}
    is_envelope = draw(st.booleans())
    shared = draw(st.sampled_from((SHARED, FLAT)))  # the core does not take a schema that contains itself
    schema: dict[str, Any] = {**row, "namespace": "cdc.shop"}
    if is_envelope:
        images = [{"name": "before", "type": ["null", row]}, {"name": "after", "type": ["null", "Row"]}]
        others = [{"name": "source", "type": shared}, {"name": "op", "type": "string"}]
        schema = {"type": "record", "name": "Envelope", "namespace": "cdc.shop", "fields": [*images, *others]}
    values = st.tuples(*(column.values for column in typed))
    rows = [{f"c{number}": value for number, value in enumerate(draw(values))} for _ in range(2)]
    return Case(_once(schema), is_envelope, [column.schema for column in typed], rows)


def _once(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the schema with each named type defined once, as Avro demands."""
    tree, named = to_tree(schema)
    return from_tree(tree, named)


def plain_type(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the type without null."""
    return next(branch for branch in schema if branch != "null") if isinstance(schema, list) else schema


def is_number(schema: Any) -> bool:  # noqa: ANN401 - JSON
    return plain_type(schema) in ("int", "long", {"type": "int", "cqlType": "smallint"})


@st.composite
def steps_for(draw: st.DrawFn, columns: list[Any]) -> list[Any]:
    """Draw at most one step for each column; at least one column stays."""
    steps: list[Any] = []
    for number, schema in enumerate(columns):
        kinds = ["none", "null", "redact", "hash", *(["drop"] if number else [])]
        if is_number(schema):
            kinds += ["enum", "flags"]
        name = f"c{number}"
        match draw(st.sampled_from(kinds)):
            case "none":
                pass
            case "enum":
                unknown = draw(st.sampled_from(["null", "keep"]))
                names = draw(st.dictionaries(INT.map(str), st.sampled_from("abc"), min_size=1, max_size=1))
                enum = {"kind": "enum", "column": name, "names": {"0": "zero", **names}, "unknown": unknown}
                steps.append(EnumStep.model_validate(enum))
            case "flags":
                bits = draw(st.lists(st.integers(0, 31), min_size=1, max_size=4, unique=True))
                keep = draw(st.booleans())
                named = {f"{name}_{bit}": bit for bit in bits}
                steps.append(FlagsStep(kind="flags", column=name, bits=named, keep=keep, unknown="ignore"))
            case how:
                salt = {"salt": SALT} if how == "hash" else {}
                steps.append(MaskStep.model_validate({"kind": "mask", "columns": [name], "how": how, **salt}))
    return steps


def expected_row(row: dict[str, Any], steps: list[Any], schemas: dict[str, Any]) -> dict[str, Any]:
    made = dict(row)
    for step in steps:
        match step:
            case MaskStep(columns=[name], how=how):
                value = made.pop(name)
                if how != "drop":
                    made[name] = None if value is None or how == "null" else masked(value, how, schemas[name])
            case EnumStep(column=name):
                number = made[name]
                other = None if step.unknown == "null" else str(number)
                made[name] = None if number is None else step.names.get(str(number), other)
            case FlagsStep(column=name):
                number = made[name] if step.keep else made.pop(name)
                made |= {flag: None if number is None else bool(number >> bit & 1) for flag, bit in step.bits.items()}
    return made


def masked(value: Any, how: str, schema: Any) -> str:  # noqa: ANN401 - of any type
    if how == "redact":
        return "***"
    return hmac.new(SALT.encode(), encode(_once(plain_type(schema)), value), hashlib.sha256).hexdigest()


def derived(case: Case, steps: list[Any]) -> Derived:
    given_steps = [{**step.model_dump(exclude_none=True), **_salt(step)} for step in steps]
    return derive(transformer_of(given_steps), SourceTopic("cdc.shop.orders", None, case.schema))


def transformer_of(steps: list[Any]) -> Transformer:
    return Transformer.model_validate(
        {
            "name": "one",
            "source": {"namespace": "cdc.shop", "source": "orders"},
            "target": {"namespace": "analysts.shop", "source": "orders"},
            "step": steps or [{"kind": "docs", "table": "x"}],
        }
    )


def _salt(step: Any) -> dict[str, str]:  # noqa: ANN401 - a step
    return {"salt": SALT} if getattr(step, "how", "") == "hash" else {}


def message(case: Case) -> tuple[Any, bytes]:
    value: Any = case.rows[0]
    if case.is_envelope:
        value = {"before": case.rows[0], "after": case.rows[1], "source": {"a": 1}, "op": "u"}
    data = encode(case.schema, value)
    return decode(case.schema, data), data


@settings(max_examples=150)
@given(st.data())
def test_the_target_is_what_the_steps_say(data: st.DataObject) -> None:
    case = data.draw(cases())
    steps = data.draw(steps_for(case.columns))
    value, encoded = message(case)
    made = derived(case, steps)
    schemas = {f"c{number}": schema for number, schema in enumerate(case.columns)}
    found = decode(made.value_schema, made.transform_value(encoded))
    if case.is_envelope:
        images = {name: expected_row(value[name], steps, schemas) for name in ("before", "after")}
        assert found == {**value, **images}
    else:
        assert found == expected_row(value, steps, schemas)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_core_makes_the_same_bytes(data: st.DataObject) -> None:
    """Also of damaged messages, where it takes them."""
    case = data.draw(cases())
    steps = data.draw(steps_for(case.columns))
    made = derived(case, steps)
    if made.rewrite_value is None:
        assert "more" in str(case.schema) or not IS_NATIVE
        return
    whole = message(case)[1]
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3)) if whole else 0):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    header = b"head"
    values = [whole, None, whole]
    rewritten = made.rewrite_value.apply(Messages.of(values), 0, header).to_list()
    assert rewritten == [None if value is None else header + made.transform_value(value) for value in values]
    with suppress(AvroError):
        [taken] = made.rewrite_value.apply(Messages.of([bytes(damaged)])).to_list()
        assert taken == made.transform_value(bytes(damaged))


CHAINS = [
    [{"how": "redact"}, {"how": "hash", "salt": SALT}],
    [{"how": "hash", "salt": SALT}, {"how": "hash", "salt": "other"}, {"how": "redact"}],
    [{"how": "null"}, {"how": "hash", "salt": SALT}],
    [{"kind": "enum", "names": {"1": "one", "-5": "minus"}, "unknown": "null"}, {"how": "hash", "salt": SALT}],
    [{"kind": "enum", "names": {"1": "one"}, "unknown": "keep"}, {"how": "redact"}],
    [{"kind": "enum", "names": {"1": "one"}, "unknown": "keep"}],
    [
        {"kind": "flags", "bits": {"low": 0, "high": 63}, "keep": True, "unknown": "ignore"},
        {"how": "hash", "salt": SALT},
    ],
]


@pytest.mark.skipif(not IS_NATIVE, reason="the native core is not compiled, or turned off")
@pytest.mark.parametrize("tree", ["long", ["null", "long"], ["long", "null"], ["long"]])
@pytest.mark.parametrize("chain", CHAINS)
def test_the_core_makes_the_same_bytes_of_a_chain_of_steps(tree: Any, chain: list[Any]) -> None:  # noqa: ANN401 - JSON
    steps = [
        {"column": "a", **step} if "kind" in step else {"kind": "mask", "columns": ["a"], **step} for step in chain
    ]
    fields = [{"name": "a", "type": tree}, {"name": "b", "type": "string"}]
    schema = {"type": "record", "name": "Row", "namespace": "cdc.shop", "fields": fields}
    made = derive(transformer_of(steps), SourceTopic("cdc.shop.orders", None, schema))
    numbers = [0, 1, -1, -5, 2**31, 2**63 - 1, -(2**63)]
    branch = encode_long(tree.index("long")) if isinstance(tree, list) else b""
    values = [branch + encode_long(number) + encode_string("b") for number in numbers]
    if "null" in tree:
        values.append(encode_long(tree.index("null")) + encode_string("b"))
    assert made.rewrite_value is not None
    assert made.rewrite_value.apply(Messages.of(values)).to_list() == [made.transform_value(value) for value in values]


@settings(max_examples=100)
@given(st.data())
def test_damaged_bytes_are_refused_or_transformed_but_never_hang(data: st.DataObject) -> None:
    case = data.draw(cases())
    made = derived(case, data.draw(steps_for(case.columns)))
    encoded = bytearray(message(case)[1])
    if not encoded:
        return
    for _ in range(data.draw(st.integers(1, 3))):
        encoded[data.draw(st.integers(0, len(encoded) - 1))] = data.draw(st.integers(0, 255))
    with suppress(TransformError):
        made.transform_value(bytes(encoded))


@pytest.mark.parametrize("count", [2**40, -(2**40)])
def test_a_count_of_items_that_take_no_bytes_does_not_hang(count: int) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "nulls", "type": {"type": "array", "items": "null"}}, {"name": "n", "type": "int"}],
    }
    size = encode_long(0) if count < 0 else b""
    made = derived(Case(schema, False, [], []), [])
    data = encode_long(count) + size + b"\0" + b"\x02"
    assert made.transform_value(data) == data
