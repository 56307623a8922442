"""Describes a file to a table: its rows, sizes and bounds, from the file's footer.

PyIceberg finds the columns of a file by their names. A file from before a renaming has the former names, so it is
described by a schema that has the table's numbers and types, and the file's names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import parquet_file_to_data_file
from pyiceberg.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyiceberg.io import FileIO
    from pyiceberg.manifest import DataFile
    from pyiceberg.table.metadata import TableMetadata

    from archive.writer.columns import Columns

_NUMBER = b"PARQUET:field_id"


def describe_files(io: FileIO, metadata: TableMetadata, columns: Columns, paths: Iterable[str]) -> Iterator[DataFile]:
    """The files with these paths, as a table with these columns gets them."""
    has_renamed = any(len(names) > 1 for names in columns.names().values())
    for path in paths:
        seen = _as_in_file(io, metadata, columns, path) if has_renamed else metadata
        yield parquet_file_to_data_file(io, seen, path)


def _as_in_file(io: FileIO, metadata: TableMetadata, columns: Columns, path: str) -> TableMetadata:
    """The table, as if its columns were those of the file, with the file's names."""
    with io.new_input(path).open() as source:
        names = dict(_names_in(pq.read_schema(source)))
    fields = list(_in_file(columns.as_iceberg(), names))
    stored: Mapping[str, Any] = {"type": "struct", "schema-id": metadata.current_schema_id, "fields": fields}
    return metadata.model_copy(update={"schemas": [Schema.model_validate(stored)]})


def _names_in(fields: Any) -> Iterator[tuple[int, str]]:  # noqa: ANN401 - a schema, or a type with fields
    for field in fields:
        yield int(field.metadata[_NUMBER]), field.name
        yield from _names_in(_inner(field.type))


def _inner(kind: pa.DataType) -> list[pa.Field]:
    return [kind.field(number) for number in range(kind.num_fields)] if pa.types.is_struct(kind) else _items(kind)


def _items(kind: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(kind):
        return [kind.item_field]
    return [kind.value_field] if pa.types.is_list(kind) else []


def _in_file(fields: Iterable[dict[str, Any]], names: Mapping[int, str]) -> Iterator[dict[str, Any]]:
    for field in fields:
        if field["id"] in names:
            yield {**field, "name": names[field["id"]], "type": _type_in_file(field["type"], names)}


def _type_in_file(kind: Any, names: Mapping[int, str]) -> Any:  # noqa: ANN401 - JSON
    if not isinstance(kind, dict):
        return kind
    made = {**kind, **{part: _type_in_file(kind[part], names) for part in ("element", "value") if part in kind}}
    if "fields" in kind:
        made["fields"] = list(_in_file(kind["fields"], names))
    return made
