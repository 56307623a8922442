"""The forms of one table's messages, by the settings of the job and of the table (materializer.type_forms)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.form_entries import CHOICES, with_entries
from cdc_common.messages.avro.type_forms import TypeForms, check_fixed
from cdc_common.messages.errors import MessageError

if TYPE_CHECKING:
    from cassandra_storage.formats.schema.tables import TableMetadata
    from materializer.settings import MaterializerSettings

_logger = structlog.get_logger(__name__)
_LEFT_OUT = "Cassandra partitions that have only static columns have no message: the topic lacks them."
_INCLUDED = (
    "Cassandra partitions that have only static columns come as rows whose clustering columns are null. Relational "
    "consumers, such as a JDBC sink or a table with a primary key in Flink, stop at them."
)
_FIX = "materializer.type_forms can say static_rows={} for this table, until its topic has a schema."


def job_forms(settings: MaterializerSettings) -> TypeForms:
    """The forms of a table without entries of its own."""
    return TypeForms(**{name: getattr(settings, name) for name in CHOICES})


def table_forms(settings: MaterializerSettings, table: TableMetadata) -> TypeForms:
    """CdcError(CONFIG_INVALID) for an entry of a column that the table does not have, or that cannot be so."""
    forms = with_entries(job_forms(settings), settings.type_forms, table.keyspace, table.name)
    keys = {column.name for column in table.partition_key + table.clustering}
    columns = {column.name: column.type for column in table.columns}
    for name, _ in forms.fixed:
        try:
            check_fixed(name, columns.get(name), is_key=name in keys)
        except MessageError as error:
            raise CdcError(
                Code.CONFIG_INVALID,
                f"materializer.type_forms has an entry for {table.qualified_name} that is not valid: {error.reason}.",
                "Correct or remove it, and start the job again.",
            ) from error
    return forms


def warn_of_static_rows(table: TableMetadata, forms: TypeForms) -> None:
    """Say what becomes of partitions that have only static columns, if the table can have them."""
    if table.static_columns:
        is_left_out = forms.static_rows == "leave_out"
        _logger.warning(
            "static rows",
            table=table.qualified_name,
            static_rows=forms.static_rows,
            problem=_LEFT_OUT if is_left_out else _INCLUDED,
            fix=_FIX.format("include" if is_left_out else "leave_out"),
        )
