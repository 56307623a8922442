"""Numbers to names, and the bits of a number to booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_messages.avro_binary import FALSE, TRUE, encode_string
from cdc_messages.avro.binary import read_long
from transformer.errors import TransformError
from transformer.steps.columns import is_nullable, lift, value_type

if TYPE_CHECKING:
    from transformer.definition import EnumStep, FlagsStep
    from transformer.steps.columns import Column, Context, Convert, MayConvert, Record

_BITS = {"int": 32, "long": 64}


def apply_enum(step: EnumStep, record: Record, context: Context) -> Record:
    column = _number_column(step.column, record, context)
    if column is None:
        return record
    if column.name in context.keys and step.unknown == "null":
        raise context.error(f'{column.name} is part of the key, which is never null: use unknown = "stop" or "keep"')
    made, convert = lift(column.field["type"], _named(step), "string", may_be_null=step.unknown == "null")
    return record.replace(column.name, column.with_type(made, convert, enumNames=dict(step.names)))


def _named(step: EnumStep) -> MayConvert:
    names = {int(number): encode_string(name) for number, name in step.names.items()}

    def convert(value: bytes) -> bytes | None:
        number, _ = read_long(value, 0)
        name = names.get(number)
        if name is not None or step.unknown == "null":
            return name
        if step.unknown == "keep":
            return encode_string(str(number))
        raise TransformError(f'the number in column {step.column} has no name (names, or unknown = "null" or "keep")')

    return convert


def apply_flags(step: FlagsStep, record: Record, context: Context) -> Record:
    column = _number_column(step.column, record, context)
    if column is None:
        return record
    if column.name in context.keys:
        raise context.error(f"{column.name} is part of the key, which has the same columns as its source")
    width = _BITS[str(value_type(column.field["type"], context.named))]
    _check_bits(step, record, context, width)
    kept = [column] if step.keep else []
    return record.replace(column.name, *kept, *(_flag(step, name, column, width) for name in step.bits))


def _check_bits(step: FlagsStep, record: Record, context: Context, width: int) -> None:
    taken = {each.name for each in record.columns} - (set() if step.keep else {step.column})
    for name, bit in step.bits.items():
        if name in taken:
            raise context.error(f"there is a column {name} already")
        if bit >= width:
            raise context.error(f"the column {step.column} has {width} bits, so there is no bit {bit} for {name}")


def _flag(step: FlagsStep, name: str, column: Column, width: int) -> Column:
    made, convert = lift(column.field["type"], _bit(step, name, width), "boolean")
    field = {"name": name, "type": made, **({"default": None} if is_nullable(made) else {})}
    field["doc"] = f"Bit {step.bits[name]} of {step.column}."
    return column._replace(field=field, converts=(*column.converts, convert))


def _bit(step: FlagsStep, name: str, width: int) -> Convert:
    """A negative number is the one of its two's complement. The first bit's conversion looks at the others."""
    every = (1 << width) - 1
    known = sum(1 << bit for bit in step.bits.values())
    unknown = every & ~known if step.unknown == "stop" and name == next(iter(step.bits)) else 0
    mask = 1 << step.bits[name]

    def convert(value: bytes) -> bytes:
        number = read_long(value, 0)[0] & every
        if number & unknown:
            raise TransformError(f'a bit that is set in column {step.column} has no name (bits, or unknown = "ignore")')
        return TRUE if number & mask else FALSE

    return convert


def _number_column(name: str, record: Record, context: Context) -> Column | None:
    column = context.column(record, name)
    if column is not None and (kind := value_type(column.field["type"], context.named)) not in _BITS:
        raise context.error(f"the column {name} is {kind or 'a union'}, not an int or a long")
    return column
