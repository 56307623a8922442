"""Documentation of a table and its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer.definition import DocsStep
    from transformer.steps.columns import Context, Record


def apply_docs(step: DocsStep, record: Record, context: Context) -> Record:
    for name, doc in step.columns.items():
        column = context.column(record, name)
        if column is not None:
            record = record.replace(name, column._replace(field={**column.field, "doc": doc}))
    return record if step.table is None else record._replace(doc=step.table)
