"""Spark's from_avro reads every type, in the default forms and in the exact ones."""

from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import col, from_json, unix_millis
from pyspark.sql.types import TimestampType

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from dev.local_stack.java.jars import install
from dev.local_stack.java.peer_jars import SPARK_AVRO
from dev.local_stack.java.runtime import find_java
from tests.support.consumers.declarations.spark_changes import read_changes
from tests.support.consumers.sql_types import SPARK_TYPES
from tests.support.consumers.typed_topic import row_fields
from tests.support.consumers.wide_table import NAMES, envelopes, wide_messages

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    jars = ",".join(str(jar) for jar in sorted(install(SPARK_AVRO).glob("*.jar")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(find_java(17).executable.parent.parent))
        patch.setenv("TZ", "UTC")  # of PySpark's timestamps
        time.tzset()
        builder = SparkSession.builder.master("local[1]").config("spark.jars", jars).config("spark.ui.enabled", "false")
        session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        yield session
        session.stop()


@pytest.mark.parametrize("forms", [DEFAULT_FORMS, EXACT], ids=["default", "exact"])
def test_every_type_is_read(spark: SparkSession, forms: TypeForms) -> None:
    messages = [message for message in wide_messages(forms) if message.value is not None]
    rows = [(at, bytearray(message.value or b"")) for at, message in enumerate(messages)]
    frame = spark.createDataFrame(rows, "at int, value binary")
    read = read_changes(frame, messages[0].value_schema).select("at", col("change").alias("v")).cache()
    shown = {field.name: field.dataType.simpleString() for field in read.select("v.after.*").schema}
    assert shown == {field["name"]: SPARK_TYPES.of(field["type"]) for field in row_fields(messages[0].value_schema)}
    expected = envelopes(messages)
    assert [envelope.op for envelope in read.orderBy("at").select("v.op").collect()] == [
        envelope["op"] for envelope in expected
    ]
    for which in ("before", "after"):
        found = read.where(f"v.{which} is not null").orderBy("at").select(*columns(read, which)).collect()
        wanted = [envelope[which] for envelope in expected if envelope[which] is not None]
        assert [plain(row) for row in found] == [plain(row) for row in wanted]
    if forms == DEFAULT_FORMS:
        of_type = next(name for name, of in NAMES.items() if of.name == "frozen<address>")
        json = read.where("at = 0").select(from_json(col(f"v.after.{of_type}"), "street string, zip int").alias("json"))
        assert plain(json.collect()[0]["json"]) == {"street": "Elm 1", "zip": 7}


def columns(frame: DataFrame, which: str) -> list[Column]:
    """Timestamps as numbers: PySpark's own conversion to Python fails for the year 1."""
    types = {field.name: field.dataType for field in frame.select(f"v.{which}.*").schema}
    return [
        (unix_millis(col(f"v.{which}.{name}")) if of == TimestampType() else col(f"v.{which}.{name}")).alias(name)
        for name, of in types.items()
    ]


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one for each kind of value
    match value:
        case Row():
            return {name: plain(item) for name, item in value.asDict(recursive=False).items()}
        case dict():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case float():
            return repr(value)
        case bytes() | bytearray():
            return bytes(value)
        case UUID():
            return str(value)
        case dt.datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)
    return value
