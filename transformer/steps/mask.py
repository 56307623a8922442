"""Masking columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.messages.avro.encoding import NULL, encode_string
from transformer.definition import PII
from transformer.steps.columns import lift
from transformer.steps.converts import Constant, Hash, Text

if TYPE_CHECKING:
    from cdc_common.messages.avro.schemas import Tree
    from transformer.definition import MaskStep
    from transformer.steps.columns import Column, Context, Record
    from transformer.steps.converts import Convert

REDACTED = "***"


def apply_mask(step: MaskStep, record: Record, context: Context) -> Record:
    for name in _names(step, record):
        if name in context.keys and step.how != "hash":
            raise context.error(f'{name} is part of the key, so that rows would lose their identity: use how = "hash"')
        column = record.find(name)
        if column is not None:
            record = record.replace(name, *_masked(step, column))
        elif context.must_exist and step.missing == "stop":
            raise context.error(
                f"there is no column {name}; the columns are {record.names}. If it was dropped or renamed, mask it "
                'in a step with missing = "ignore": messages that are not read yet may have it'
            )
    return record


def _names(step: MaskStep, record: Record) -> list[str]:
    if isinstance(step.columns, list):
        return step.columns
    assert step.columns == PII
    return [column.name for column in record.columns if column.is_personal]


def _masked(step: MaskStep, column: Column) -> list[Column]:
    tree = column.field["type"]
    made: Tree
    convert: Convert
    match step.how:
        case "drop":
            return []
        case "null":
            branches = tree if isinstance(tree, list) else [tree]
            made = ["null", *(branch for branch in branches if branch != "null")]
            convert = Constant(NULL)
        case "redact":
            made, convert = lift(tree, Text(encode_string(REDACTED)), "string")
        case "hash":
            assert step.salt is not None
            made, convert = lift(tree, Hash(step.salt.get_secret_value().encode()), "string")
    return [column.with_type(made, convert, mask=step.how)._replace(is_masked=True)]
