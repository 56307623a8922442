"""Values, clusterings and paths of cells encoded by the native core and by the Python code."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.rows.byte_comparable import clustering_encoder, path_encoder
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import ListType, MapType, NativeType, SetType
from cassandra_storage.formats.types.native_order import KEY_TYPES, path_form
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.cql_values import EmptyValueError
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal, TypeForms
from dev.verify.fuzz.mutate import mutated
from dev.verify.oracle.type_values import TypeValues
from materializer.rows.native_plan import shown_form, type_form
from materializer.rows.shown_forms import value_form

if TYPE_CHECKING:
    import random

    from cassandra_storage.formats.types.marshal import CqlType
    from cdc_common.messages.avro.cql_values import Encoder

EMPTY, UNREADABLE, NOT_MINE = 1, 2, 3


CHOICES = (
    TypeForms(),
    DEFAULT_FORMS,
    DEFAULT_FORMS._replace(decimals="exact", out_of_range="null"),
    TypeForms(decimals="double", varints="decimal", durations="nanoseconds", out_of_range="null"),
    TypeForms(maps="json", collections="json", durations="text", out_of_range="null"),
    TypeForms(decimals="string", varints="string", durations="text", user_types="json"),
    TypeForms(fixed=(("c", FixedDecimal(5, 2)),)),
    TypeForms(fixed=(("c", FixedDecimal(38, 10)),)),
)


def check_in_forms(type_: CqlType, value: bytes) -> bool:
    """check_value in each choice of forms, as far as the core takes the value; whether it takes it in all of them."""
    from cdc_native.fold import values  # noqa: PLC0415 - it may not be compiled

    form, takes_all = value_form(type_), True
    for forms, is_key in ((forms, is_key) for forms in CHOICES for is_key in (False, True)):
        column = ColumnMetadata("c", type_, ColumnKind.CLUSTERING if is_key else ColumnKind.REGULAR)
        encode = AvroTypes("a", forms).column("c", type_, cql_name="c", is_key=is_key).encode
        shown = value if form is None or is_key else form(value)
        found = values.encode(shown_form(column, forms, is_key=is_key), value)
        if found == NOT_MINE:
            takes_all = False
            continue
        assert found == _expected(encode, shown), (type_, value, forms, is_key)
    return takes_all


def check_value(type_: CqlType, value: bytes) -> bool:
    """Whether it is a value of the type. A key column's is encoded as it is, any other in its one form."""
    from cdc_native.fold import values  # noqa: PLC0415 - it may not be compiled

    encode, form = AvroTypes("a", EXACT).column("c", type_).encode, value_form(type_)
    of_key = values.encode(type_form(type_, is_key=True, forms=EXACT), value)
    found = values.encode(type_form(type_, EXACT), value)
    if NOT_MINE in (of_key, found):  # a map whose keys do not rise
        assert form is not None
        assert form(value) != value or _expected(encode, value) in (EMPTY, UNREADABLE), (type_, value)
        return False
    assert of_key == _expected(encode, value), (type_, value)
    assert found == _expected(encode, value if form is None else form(value)), (type_, value)
    return isinstance(found, bytes)


def check_any_value(rng: random.Random) -> bool:
    """A value of any type, as it is and damaged; whether the damaged one is a value."""
    types = TypeValues(rng, is_plain=False)
    type_ = types.type()
    value = types.value(type_)
    check_value(type_, value)
    check_in_forms(type_, value)
    return check_value(type_, mutated(rng, value, [b"\0"]))


def check_component(column: ColumnMetadata, value: bytes | None) -> bool:
    """Whether it is a value of the clustering column, whose type is one of KEY_TYPES."""
    from cdc_native.formats import keys  # noqa: PLC0415 - it may not be compiled

    assert isinstance(column.type, NativeType)
    try:
        key: bytes | None = clustering_encoder([column])((value,))
    except FormatError:
        key = None
    found = keys.component((*KEY_TYPES[column.type.name], column.is_reversed), value)
    assert found == (None if key is None else key[:-1])
    return found is not None


def check_paths(rng: random.Random, name: str) -> bool:
    """The order of two paths of sets, maps and lists of a native type; whether all are paths."""
    from cdc_native.formats import keys  # noqa: PLC0415 - it may not be compiled

    types = TypeValues(rng, is_plain=False)
    of, are_paths = NativeType(name), True
    for type_ in (
        SetType(of, is_multi_cell=True),
        MapType(of, of, is_multi_cell=True),
        ListType(of, is_multi_cell=True),
    ):
        path_type = NativeType("timeuuid") if isinstance(type_, ListType) else of
        left, right = types.value(path_type), types.value(path_type)
        if rng.random() < 0.2:
            left = mutated(rng, left, [b"\0", right])
        encode = path_encoder(type_)
        try:
            x, y = encode(left), encode(right)
        except FormatError:
            order, are_paths = None, False
        else:
            order = (x > y) - (x < y)
        assert keys.order(path_form(type_), left, right) == order
    return are_paths


def _expected(encode: Encoder, value: bytes) -> bytes | int:
    try:
        return encode(value)
    except EmptyValueError:
        return EMPTY
    except FormatError:
        return UNREADABLE
