"""Tables of the layout `hive` in AWS Glue's catalog: their columns, and a partition for each hour or day.

Each file event registers the partitions of its files; nothing crawls the folders. A partition that is there stays, so
an event may be registered twice. A schema version has a table of its own: the columns of different versions do not fit
each other. Partitions get the columns of their table: readers compare both.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import boto3

from archive.faults import table_refused
from archive.registrar.hive_types import hive_columns
from archive.registrar.tables import Committed, position_after

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from archive.registrar.tables import TableKey, Waiting
    from archive.writer.columns import Columns
    from stream_runtime.stores.store import Store

_Item = TypeVar("_Item")
_AT_ONCE = 100  # the most partitions of a request
_OWNER = "cdc.archive"
_PARQUET = {
    "InputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "OutputFormat": "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
    "SerdeInfo": {"SerializationLibrary": "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"},
}


class GlueTables:
    """archive.registrar.tables.Tables. Credentials, region and endpoint come from boto3's usual chain."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, set[str]] = {}
        self._positions: dict[str, dict[int, int]] = {}

    def has(self, name: str, offsets: Mapping[int, int]) -> bool:
        """Whether the table is there. It does not know its position: its partitions may be registered again."""
        self._positions[name] = dict(offsets)
        return self._find(name) is not None

    def commit(self, key: TableKey, columns: Columns, waiting: Sequence[Waiting]) -> Committed:
        partitions = dict.fromkeys(_folder_of(path) for one in waiting for path in one.paths)
        self._ensure_table(key, columns)
        known = self._known.setdefault(key.name, set())
        self._create_partitions(key, columns, [folder for folder in partitions if folder not in known])
        known.update(partitions)
        self._positions[key.name] = position_after(self._positions.get(key.name, {}), waiting)
        return Committed(dict(self._positions[key.name]), sum(len(one.paths) for one in waiting))

    @cached_property
    def _glue(self) -> Any:  # noqa: ANN401 - boto3 makes its classes at run time
        return boto3.session.Session().client("glue")

    def _find(self, name: str) -> dict[str, Any] | None:
        database, _, table = name.rpartition(".")
        try:
            found: dict[str, Any] = self._glue.get_table(DatabaseName=database, Name=table)["Table"]
        except self._glue.exceptions.EntityNotFoundException:
            return None
        return found

    def _ensure_table(self, key: TableKey, columns: Columns) -> None:
        """Make the table, or give it and its partitions the columns that are new."""
        database, _, name = key.name.rpartition(".")
        wanted = self._table_input(key, name, columns)
        found = self._find(key.name)
        if found is None:
            self._unless_there(self._glue.create_database, DatabaseInput={"Name": database})
            self._unless_there(self._glue.create_table, DatabaseName=database, TableInput=wanted)
            return
        if _OWNER not in found.get("Parameters", {}):
            raise table_refused(key.name, "another program has made it")
        if found["StorageDescriptor"]["Columns"] != wanted["StorageDescriptor"]["Columns"]:
            self._glue.update_table(DatabaseName=database, TableInput=wanted, SkipArchive=True)
            self._update_partitions(key, columns)

    def _table_input(self, key: TableKey, name: str, columns: Columns) -> dict[str, Any]:
        keys = ["event_date", "event_hour"] if key.bucket == "hour" else ["event_date"]
        namespace, _, table = key.table.rpartition(".")
        folder = f"{namespace}/{table}/schema_version={key.version}"
        return {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": {"EXTERNAL": "TRUE", "classification": "parquet", _OWNER: "1"},
            "PartitionKeys": [{"Name": label, "Type": "string"} for label in keys],
            "StorageDescriptor": self._storage(columns, folder),
        }

    def _storage(self, columns: Columns, folder: str) -> dict[str, Any]:
        made = [{"Name": column.name, "Type": column.type} for column in hive_columns(columns.fields)]
        return {"Columns": made, "Location": self._store.uri(folder), **_PARQUET}

    def _create_partitions(self, key: TableKey, columns: Columns, folders: Sequence[str]) -> None:
        database, _, name = key.name.rpartition(".")
        for some in _parts(folders):
            wanted = [self._partition_input(columns, folder) for folder in some]
            done = self._glue.batch_create_partition(DatabaseName=database, TableName=name, PartitionInputList=wanted)
            _check(key, done.get("Errors", ()))

    def _update_partitions(self, key: TableKey, columns: Columns) -> None:
        database, _, name = key.name.rpartition(".")
        pages = self._glue.get_paginator("get_partitions").paginate(DatabaseName=database, TableName=name)
        root = self._store.uri("")
        found = [one for page in pages for one in page["Partitions"]]
        for some in _parts(found):
            entries = [
                {
                    "PartitionValueList": one["Values"],
                    "PartitionInput": self._partition_input(
                        columns, one["StorageDescriptor"]["Location"].removeprefix(root)
                    ),
                }
                for one in some
            ]
            done = self._glue.batch_update_partition(DatabaseName=database, TableName=name, Entries=entries)
            _check(key, done.get("Errors", ()))

    def _partition_input(self, columns: Columns, folder: str) -> dict[str, Any]:
        return {"Values": _values_of(folder), "StorageDescriptor": self._storage(columns, folder)}

    def _unless_there(self, create: Callable[..., object], **wanted: object) -> None:
        """Another process may make it at the same time."""
        with suppress(self._glue.exceptions.AlreadyExistsException):
            create(**wanted)


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _values_of(folder: str) -> list[str]:
    """The values of the partition's keys: those of the folders below the one of the schema version."""
    parts = [part.partition("=") for part in folder.split("/")]
    return [value for label, _, value in parts if label in {"event_date", "event_hour"}]


def _parts(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    for first in range(0, len(items), _AT_ONCE):
        yield items[first : first + _AT_ONCE]


def _check(key: TableKey, errors: Iterable[Mapping[str, Any]]) -> None:
    """CdcError for a partition that was refused, unless it is there."""
    for error in errors:
        code = error["ErrorDetail"]["ErrorCode"]
        if code != "AlreadyExistsException":
            raise table_refused(
                key.name, f"Glue refuses its partition {'/'.join(error.get('PartitionValues', ()))}: {code}"
            )
