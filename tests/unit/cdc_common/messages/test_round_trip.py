"""Cassandra's bytes -> Avro -> fastavro's and Apache's reader -> the same bytes, for every type."""

from __future__ import annotations

import json
import struct
from io import BytesIO
from typing import Any

import avro.io
import avro.schema
import pytest
from fastavro import schemaless_reader
from hypothesis import assume, given
from hypothesis import strategies as st

from cassandra_storage.formats.types.marshal import CqlType, ListType, NativeType, TupleType, UserType
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from cdc_common.messages.errors import MessageError
from materializer.rows.shown_forms import value_form
from tests.support.cdc_common.messages.cql_values import values
from tests.support.cdc_common.messages.extremes import EXTREMES
from tests.support.cdc_common.messages.from_avro import cells, serialized, without_logical_types
from tests.support.cdc_common.messages.strategies import TYPES


def read_by_fastavro(schema: Any, data: bytes) -> Any:  # noqa: ANN401  any JSON, any value
    stream = BytesIO(data)
    value = schemaless_reader(stream, schema, None)
    assert stream.tell() == len(data)
    return value


def read_by_apache(schema: Any, data: bytes) -> Any:  # noqa: ANN401  any JSON, any value
    stream = BytesIO(data)
    parsed = avro.schema.parse(json.dumps(schema))
    value = avro.io.DatumReader(parsed, parsed).read(avro.io.BinaryDecoder(stream))
    assert stream.tell() == len(data)
    return value


READERS = (read_by_fastavro, read_by_apache)


def back(cql_type: CqlType, value: bytes | tuple[tuple[bytes, bytes], ...], forms: TypeForms) -> list[object]:
    """Return each reader's value in Cassandra's bytes."""
    avro_type = AvroTypes("t", forms).column("c", cql_type)
    data, schema = avro_type.encode(value), without_logical_types(avro_type.schema)
    of = cells if isinstance(value, tuple) else serialized
    return [of(cql_type, read(schema, data)) for read in READERS]


@given(TYPES, st.data(), st.sampled_from([EXACT, DEFAULT_FORMS]))
def test_every_value_comes_back(cql_type: CqlType, data: st.DataObject, forms: TypeForms) -> None:
    """From the exact forms and from the default ones: they lose nothing."""
    value, _ = data.draw(values(cql_type))
    expected = value
    if isinstance(cql_type, ListType) and cql_type.is_multi_cell:
        expected = tuple((None, element) for _, element in value)
    try:
        found = back(cql_type, value, forms)
    except MessageError as error:
        assume("two user types" not in error.reason)
        raise
    assert found == [expected, expected]


@pytest.mark.parametrize("forms", [EXACT, DEFAULT_FORMS], ids=["exact", "default"])
@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_come_back(name: str, forms: TypeForms) -> None:
    form = value_form(NativeType(name)) if forms is DEFAULT_FORMS else None
    for value in (
        extreme if form is None else form(extreme) for extreme in EXTREMES[name]
    ):  # a text has no byte too many
        assert back(NativeType(name), value, forms) == [value, value]
        in_json = struct.pack(">i", len(value)) + value
        if name != "counter":  # which is in no tuple
            assert back(TupleType((NativeType(name),)), in_json, forms) == [in_json] * 2


@pytest.mark.parametrize("size", [1, 255, 2**31 - 1])
def test_a_boolean_of_another_byte_comes_back_as_true(size: int) -> None:
    """Cassandra writes 1 and takes any other byte for true as well."""
    assert back(NativeType("boolean"), bytes((size % 255 + 1,)), EXACT) == [b"\x01", b"\x01"]


@pytest.mark.parametrize("bits", ["7ff8000000000001", "fff8000000000000", "7ff0000000000001", "ffffffffffffffff"])
def test_every_nan_of_a_double_comes_back_with_its_bits(bits: str) -> None:
    assert back(NativeType("double"), bytes.fromhex(bits), EXACT) == [bytes.fromhex(bits)] * 2


@pytest.mark.parametrize("bits", ["7fc00001", "ffc00000", "ffffffff"])
def test_every_quiet_nan_of_a_float_comes_back_with_its_bits(bits: str) -> None:
    """Python has no float of 32 bits: a signalling NaN, which is in the message, it reads as the quiet one."""
    assert back(NativeType("float"), bytes.fromhex(bits), EXACT) == [bytes.fromhex(bits)] * 2


POINT = UserType("k", "point", ("x", "y"), (NativeType("int"), NativeType("text")), is_multi_cell=False)


@pytest.mark.parametrize("cql_type", [POINT, TupleType(POINT.field_types)])
def test_fields_that_a_value_does_not_have_come_back_as_null(cql_type: CqlType) -> None:
    """A value from before the type got its last field compares as one with null there (TupleType.compareCustom)."""
    short = struct.pack(">ii", 4, 7)
    assert back(cql_type, short, EXACT) == [short + struct.pack(">i", -1)] * 2
