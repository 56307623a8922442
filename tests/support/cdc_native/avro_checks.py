"""Checks of the Avro engine with any schema and bytes: compared with the Python code, and with fastavro."""

from __future__ import annotations

import array
import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdc_common.messages.avro.schemas import to_tree
from cdc_common.messages.avro.skipping import skipper
from cdc_native.avro.columns import Table
from cdc_native.avro.keys import Keys
from cdc_native.avro.messages import AvroError, Messages
from cdc_native.avro.rewrite import Layout, Rewrite
from cdc_native.avro.rows import write_rows
from tests.support.cdc_native.avro_cases import Case, Schemas

if TYPE_CHECKING:
    import random

    from cdc_common.messages.avro.forms import Form
    from cdc_common.messages.avro.skipping import Skip

HEADER = b"\0\0\0\0\7"
NEW_HEADER = b"\0\0\0\0\x08"
Ends = list[int]


def check_whole(rng: random.Random, *, with_unions: bool = False) -> None:
    """Messages of any schema, as they are: extents, project, columns, and rows back."""
    case = Case.of(Schemas(rng, with_unions).record())
    plain = [case.message(rng) for _ in range(rng.choice((0, 1, 9)))]
    data = [*plain, *(case.message(rng, in_blocks=True) for _ in range(3))]
    check_extents(case, data)
    check_project(rng, case, data)
    with suppress(ValueError):
        Keys(case.program, [(name,) for name in case.form.names[:2]]).apply(Messages.of(data))
    if not with_unions:
        check_columns(case, data, len(plain))


def check_extents(case: Case, data: list[bytes]) -> None:
    layout = Layout(case.program, opened(case.form))
    extents = layout.extents(Messages.of(HEADER + value for value in data), len(HEADER))
    for number, value in enumerate(data):
        ends = python_ends(case, value)
        assert ends is not None
        for name, begin, end in zip(case.form.names, [0, *ends], ends, strict=False):
            assert extents.of(number, (name,)) == (begin + len(HEADER), end + len(HEADER))


def opened(form: Form) -> list[tuple[str, ...]]:
    """Return the records in a record, at the first level."""
    found: list[tuple[str, ...]] = []
    for name, inner in zip(form.names, form.inner, strict=True):
        within = inner.inner[1 - inner.size] if inner.kind == "optional" else inner
        if within.kind == "record":
            found.append((name,))
    return found


def python_ends(case: Case, data: bytes) -> Ends | None:
    """Where each field ends by the Python code; None if the bytes are not of the schema."""
    tree, named = to_tree(case.schema)
    skips: list[Skip] = [skipper(field["type"], named) for field in tree["fields"]]
    position, ends = 0, []
    try:
        for skip in skips:
            position = skip(data, position)
            ends.append(position)
    except (IndexError, ValueError):
        return None
    return ends if position == len(data) else None


def check_project(rng: random.Random, case: Case, data: list[bytes]) -> None:
    """Fields in another order, some twice, and of records that may be null."""
    names = rng.choices(case.form.names, k=4)
    layout = Layout(case.program, opened(case.form))
    ops: list[tuple[Any, ...]] = [("copy", (name,), (name,)) for name in names]
    ops += [("present", path, [("bytes", b"there")], [("bytes", b"null")]) for path in opened(case.form)]
    made = Rewrite(layout, [*ops, ("given", 0)]).apply(
        Messages.of(HEADER + value for value in data), len(HEADER), NEW_HEADER, [Messages.of(data)]
    )
    for value, projected in zip(data, made.to_list(), strict=True):
        ends = python_ends(case, value)
        assert ends is not None
        places = {name: (begin, end) for name, begin, end in zip(case.form.names, [0, *ends], ends, strict=False)}
        expected = b"".join(value[slice(*places[name])] for name in names)
        for (name,) in opened(case.form):
            form = case.form.inner[case.form.names.index(name)]
            is_null = form.kind == "optional" and value[places[name][0]] == 2 * form.size
            expected += b"null" if is_null else b"there"
        assert projected == NEW_HEADER + expected + value


def check_columns(case: Case, data: list[bytes], whole: int) -> None:
    """whole: how many of the first messages have their arrays in one block, so that they come back as they were."""
    table = Table(case.program)
    batch = pa.record_batch(table.rows(Messages.of(HEADER + value for value in data), len(HEADER)))
    batch.validate(full=True)
    assert batch.schema == pa.schema(table)
    assert [plain_row(case.form, row) for row in batch.to_pylist()] == [case.decode(value) for value in data]
    for first, last in ((0, whole), (whole // 2, whole)):
        back = write_rows(table, batch.slice(first, last - first), NEW_HEADER).to_list()
        assert [case.decode((message or b"")[5:]) for message in back] == [
            case.decode(value) for value in data[first:last]
        ]
        if "decimal" not in str(case.schema):
            assert back == [NEW_HEADER + value for value in data[first:last]]


def plain_row(form: Form, value: Any) -> Any:  # noqa: ANN401 - of any type
    """Arrow's Python values as fastavro's: a map is a dict."""
    if value is None:
        return None
    match form.kind:
        case "optional":
            return plain_row(form.inner[1 - form.size], value)
        case "record":
            return {name: plain_row(inner, value[name]) for name, inner in zip(form.names, form.inner, strict=True)}
        case "array":
            return [plain_row(form.inner[0], item) for item in value]
        case "map":
            return {key: plain_row(form.inner[0], item) for key, item in value}
    return value


def check_damaged(rng: random.Random) -> bool:
    """A damaged message of any schema: check_message. Whether the core took it."""
    with_unions = rng.random() < 0.5
    case = Case.of(Schemas(rng, with_unions).record())
    whole = case.message(rng, in_blocks=rng.random() < 0.5)
    return check_message(case, whole, damaged(rng, whole))


def check_message(case: Case, whole: bytes, data: bytes) -> bool:
    """Any bytes after a whole message: only AvroError, and what the core takes is of the schema. Whether it took
    them.
    """
    batch = without_room([HEADER + whole, HEADER + data])
    layout = Layout(case.program, opened(case.form))
    ends = python_ends(case, data)
    copy = Rewrite(layout, [("copy", (case.form.names[0],), (case.form.names[-1],))])
    error = refusal(layout, copy, batch)
    if error is None:
        assert ends is not None
        extents = layout.extents(batch, len(HEADER))
        begins = [0, *ends]
        found = [extents.of(1, (name,)) for name in case.form.names]
        assert found == [(begins[at] + len(HEADER), end + len(HEADER)) for at, end in enumerate(ends)]
        assert copy.apply(batch, len(HEADER))[1] == data
    else:
        assert error.index == 1
        assert 0 <= error.position <= len(data) + len(HEADER)
    with suppress(ValueError):
        check_keys_and_columns(case, batch, data)
    return error is None


def without_room(messages: list[bytes]) -> Messages:
    """Return messages with no byte after the last one: after a bytes object there is a zero, which ends a number."""
    offsets = itertools.accumulate(map(len, messages), initial=0)
    return Messages(array.array("B", b"".join(messages)), array.array("q", offsets))


def refusal(layout: Layout, copy: Rewrite, batch: Messages) -> AvroError | None:
    """Return what the batch is refused with: by both, or by none."""
    errors: list[AvroError] = []
    for work in (layout.extents, copy.apply):
        try:
            work(batch, len(HEADER))
        except AvroError as error:
            errors.append(error)
    assert len(errors) != 1
    return errors[0] if errors else None


def check_keys_and_columns(case: Case, batch: Messages, data: bytes) -> None:
    """ValueError for what has no keys or columns, and for damage."""
    with suppress(ValueError):
        Keys(case.program, [(name,) for name in case.form.names]).apply(batch, len(HEADER))
    rows = Table(case.program).rows(batch, len(HEADER))
    table = pa.record_batch(rows)
    table.validate(full=True)
    assert python_ends(case, data) is not None
    write_rows(Table(case.program), table)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Flip, cut, insert, or put an absurd length."""
    made = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 3))):
        at = rng.randrange(len(made) + 1)
        match rng.randrange(5):
            case 0 if made:
                made[at % len(made)] ^= 1 << rng.randrange(8)
            case 1:
                del made[at:]
            case 2:
                del made[at : at + rng.choice((1, 2, 8))]
            case 3:
                made[at:at] = rng.randbytes(rng.choice((1, 2, 8)))
            case _:
                made[at : at + 1] = rng.choice(
                    (b"\xff" * 9 + b"\1", b"\xfe" + b"\xff" * 8 + b"\1", b"\x80" * 12, b"\xff" * 4)
                )
    return bytes(made)
