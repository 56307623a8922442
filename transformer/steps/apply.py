"""All steps of a transformer on a record, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from transformer.definition import DocsStep, EnumStep, FlagsStep, MaskStep
from transformer.steps.columns import Column, Record
from transformer.steps.docs import apply_docs
from transformer.steps.mask import apply_mask
from transformer.steps.numbers import apply_enum, apply_flags

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from transformer.definition import Step
    from transformer.steps.columns import Context


def apply_steps(steps: Sequence[Step], record: dict[str, Any], context: Context) -> Record:
    """Apply the steps to the tree of a record. context: with the number 0. StepError."""
    fields = enumerate(record["fields"])
    columns = [Column(field, index, is_personal=_is_personal(field, context)) for index, field in fields]
    made = Record(columns, record.get("doc"))
    for number, step in enumerate(steps, 1):
        made = _apply_step(step, made, context._replace(number=number))
    return made


def _is_personal(field: dict[str, Any], context: Context) -> bool:
    """By the catalogue, or by a property of the schema itself."""
    return field["name"] in context.pii or field.get("pii") is True


def _apply_step(step: Step, record: Record, context: Context) -> Record:
    match step:
        case MaskStep():
            return apply_mask(step, record, context)
        case EnumStep():
            return apply_enum(step, record, context)
        case FlagsStep():
            return apply_flags(step, record, context)
        case DocsStep():
            return apply_docs(step, record, context)
        case _:
            assert_never(step)
