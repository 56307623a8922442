"""The judges: what DuckDB, PyIceberg and Spark SQL read of the tables. None of them was written here."""

from __future__ import annotations

import json
import os
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyiceberg.catalog import load_catalog

from dev.local_stack.java.jars import install
from dev.local_stack.java.peer_jars import ICEBERG_SPARK, SQLITE_JDBC
from dev.local_stack.process.network import LOCALHOST
from dev.local_stack.servers.programs import spark_environment
from dev.local_stack.servers.spark_cluster import spark_home
from dev.verify.archive.load import RENAMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyiceberg.table import Table

    from dev.verify.archive.fold import Kind

SPARK_SCRIPT = Path(__file__).with_name("spark_judge.py")
MOST_OUTPUT = 3000  # characters of Spark's log that are shown
COLUMNS = ("_kafka_offset", "_op", "_row_sequence", "_ts_us", "before", "after")
NAMES = ("offset", "op", "row_sequence", "ts_us", "before", "after")


class LakeFiles(NamedTuple):
    """The files of a table."""

    # The paths.
    paths: list[str]
    # A path for each schema, the newest last.
    samples: list[str]


class Judge(ABC):
    """A reader of the tables of one layout."""

    name: str
    forgets_null_lists = False
    """Whether it reads a list of records that is null as an empty one."""

    @abstractmethod
    def read(self, kind: Kind) -> pa.Table:
        """The rows of a range of offsets, in their order, with NAMES."""


class DuckDb(Judge):
    """It finds the columns of files by name, so that a renamed one is put together here."""

    def __init__(self, layout: str, files: dict[int, LakeFiles]) -> None:
        self.name = f"DuckDB, {layout}"
        self._files = files
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")

    def read(self, kind: Kind) -> pa.Table:
        query = (
            f"SELECT {', '.join(COLUMNS)} FROM read_parquet($1, union_by_name = true, hive_partitioning = false) "
            "WHERE _kafka_partition = $2 AND _kafka_offset >= $3 AND _kafka_offset < $4 ORDER BY _kafka_offset"
        )
        arguments = [self._files[kind.version].paths, kind.partition, kind.first, kind.end]
        found = self._connection.sql(query, params=arguments).to_arrow_table()
        return renamed(found.rename_columns(list(NAMES)))


class PyIceberg(Judge):
    """It has the names of the table. Version 0.12 rebuilds lists of records without their nulls."""

    name = "PyIceberg, iceberg"
    forgets_null_lists = True

    def __init__(self, database: Path, tables: dict[int, str]) -> None:
        catalog = load_catalog("lake", type="sql", uri=f"sqlite:///{database}")
        self._tables: dict[int, Table] = {version: catalog.load_table(name) for version, name in tables.items()}

    def read(self, kind: Kind) -> pa.Table:
        row_filter = (
            f"_kafka_partition = {kind.partition} AND _kafka_offset >= {kind.first} AND _kafka_offset < {kind.end}"
        )
        scan = self._tables[kind.version].scan(row_filter, selected_fields=COLUMNS)
        return scan.to_arrow().sort_by("_kafka_offset").select(COLUMNS).rename_columns(list(NAMES))


class Written(Judge):
    """Spark SQL or Trino, which has read everything, and written it to files of its own."""

    def __init__(self, program: str, layout: str, folders: dict[int, Path]) -> None:
        self.name = f"{program}, {layout}"
        self._folders = folders

    def read(self, kind: Kind) -> pa.Table:
        found = ds.dataset(self._folders[kind.version], format="parquet").to_table(
            columns=list(NAMES),
            filter=(ds.field("partition") == kind.partition)
            & (ds.field("offset") >= kind.first)
            & (ds.field("offset") < kind.end),
        )
        return renamed(found.sort_by("offset"))


def renamed(found: pa.Table) -> pa.Table:
    """The rows with each renamed field under its last name, from whichever of both has it."""
    for image in ("before", "after"):
        place = found.schema.get_field_index(image)
        column = found.column(image).combine_chunks()
        column = column if isinstance(column, pa.Array) else pa.concat_arrays(column.chunks)
        found = found.set_column(place, image, _renamed(column))
    return found


def _renamed(image: pa.StructArray) -> pa.StructArray:
    parts = {field.name: pc.struct_field(image, field.name) for field in image.type}
    for old, new in RENAMED.items():
        if old in parts:
            former = parts.pop(old)
            parts[new] = pc.coalesce(parts[new], former) if new in parts else former
    return pa.StructArray.from_arrays(list(parts.values()), list(parts), mask=image.is_null())


class SparkRead(NamedTuple):
    """A table that Spark is to read."""

    # The name of an Iceberg table; empty for files.
    name: str
    # The files of another one.
    files: LakeFiles
    # The folder for what Spark has read.
    target: Path


def read_by_spark(reads: Sequence[SparkRead], database: Path, folder: Path) -> None:
    """Let Spark read tables. ClickException if it fails."""
    plan = {
        "database": str(database),
        "warehouse": str(folder),
        "tables": [
            {"name": read.name, "files": read.files.paths, "samples": read.files.samples, "target": str(read.target)}
            for read in reads
        ],
    }
    file = folder / "plan.json"
    file.write_text(json.dumps(plan), encoding="utf-8")
    jars = ",".join(str(jar) for jars in (ICEBERG_SPARK, SQLITE_JDBC) for jar in sorted(install(jars).glob("*.jar")))
    submit = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]", "--driver-memory", "2g"]
    submit += ["--jars", jars, "--conf", "spark.ui.enabled=false", "--conf", f"spark.driver.host={LOCALHOST}"]
    done = subprocess.run(
        [*submit, str(SPARK_SCRIPT), str(file)],
        env={**os.environ, **spark_environment(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise click.ClickException(f"Spark has failed: {done.stderr[-MOST_OUTPUT:]}")
