"""Numbers to names, and the bits of a number to booleans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.avro.encoding import encode_string
from transformer.steps.columns import is_nullable, lift, value_type
from transformer.steps.converts import Bit, Name

if TYPE_CHECKING:
    from transformer.definition import EnumStep, FlagsStep
    from transformer.steps.columns import Column, Context, Record

_BITS = {"int": 32, "long": 64}


def apply_enum(step: EnumStep, record: Record, context: Context) -> Record:
    column = _number_column(step.column, record, context)
    if column is None:
        return record
    if column.name in context.keys and step.unknown == "null":
        raise context.error(f'{column.name} is part of the key, which is never null: use unknown = "stop" or "keep"')
    names = {int(number): encode_string(name) for number, name in step.names.items()}
    named = Name(step.column, names, step.unknown)
    made, convert = lift(column.field["type"], named, "string", may_be_null=step.unknown == "null")
    return record.replace(column.name, column.with_type(made, convert, enumNames=dict(step.names)))


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
    taken = {column.name for column in record.columns} - (set() if step.keep else {step.column})
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


def _bit(step: FlagsStep, name: str, width: int) -> Bit:
    """The first bit's conversion looks at the others."""
    every = (1 << width) - 1
    known = sum(1 << bit for bit in step.bits.values())
    refused = every & ~known if step.unknown == "stop" and name == next(iter(step.bits)) else 0
    return Bit(step.column, 1 << step.bits[name], every, refused)


def _number_column(name: str, record: Record, context: Context) -> Column | None:
    column = context.column(record, name)
    if column is not None and (kind := value_type(column.field["type"], context.named)) not in _BITS:
        raise context.error(f"the column {name} is {kind or 'a union'}, not an int or a long")
    return column
