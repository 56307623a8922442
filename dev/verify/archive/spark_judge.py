"""The judge Spark SQL, for spark-submit: what it reads of a table, as Parquet files of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructField, StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CATALOG = "spark.sql.catalog.lake"


def main(plan: str) -> None:
    """plan: a file of JSON: the catalog's database, and tables by name, or by files and samples."""
    known = json.loads(Path(plan).read_text(encoding="utf-8"))
    spark = (
        SparkSession.builder.appName("judge")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.parquet.int96RebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInWrite", "CORRECTED")
        .config("spark.sql.parquet.datetimeRebaseModeInRead", "CORRECTED")
        .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        .config(CATALOG, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{CATALOG}.type", "jdbc")
        .config(f"{CATALOG}.uri", f"jdbc:sqlite:{known['database']}")
        .config(f"{CATALOG}.warehouse", known["warehouse"])
        .getOrCreate()
    )
    for table in known["tables"]:
        read = spark.table(f"lake.{table['name']}") if table["name"] else hive(spark, table["files"], table["samples"])
        columns = [f"_kafka_{name} AS `{name}`" for name in ("partition", "offset")]
        columns += ["_op AS op", "_row_sequence AS row_sequence", "_ts_us AS ts_us", "before", "after"]
        read.selectExpr(*columns).write.parquet(table["target"])
    spark.stop()


def hive(spark: SparkSession, files: list[str], samples: list[str]) -> DataFrame:
    """Files whose columns are found by name. samples: a file of each schema, the newest last."""
    newest, *older = [spark.read.parquet(sample).schema for sample in reversed(samples)]
    for schema in older:
        newest = merged(newest, schema)
    return spark.read.schema(newest).parquet(*files)


def merged(newer: StructType, older: StructType) -> StructType:
    """The fields of both, with the newer one's types."""
    known = {field.name for field in newer}
    before = {field.name: field.dataType for field in older}
    fields = [StructField(field.name, merged_type(field.dataType, before.get(field.name))) for field in newer]
    return StructType([*fields, *(field for field in older if field.name not in known)])


def merged_type(newer: DataType, older: DataType | None) -> DataType:
    if isinstance(newer, StructType) and isinstance(older, StructType):
        return merged(newer, older)
    return newer


if __name__ == "__main__":
    main(*sys.argv[1:])
