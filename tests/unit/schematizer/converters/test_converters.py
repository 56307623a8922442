"""Converters: descriptions of tables as Avro schemas."""

from __future__ import annotations

import contextlib
import json
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest

from schematizer.avro_schemas.parsing import parse
from schematizer.converters import formats as converters
from schematizer.converters.converted import ConversionError, Converted
from schematizer.converters.formats import all_converters

if TYPE_CHECKING:
    from collections.abc import Mapping

CONVERTERS = all_converters()


def fields(format_: str, text: str) -> Mapping[str, dict[str, Any]]:
    """Return the fields by name. The converted schema is a valid Avro schema."""
    converted = CONVERTERS[format_].convert(text, "shop")
    schema = json.loads(parse(converted.value).canonical)
    assert list(converted.primary_key) == ["id"]
    return {field["name"]: field for field in schema["fields"] if field["name"] != "id"}


@pytest.mark.parametrize(
    ("declared", "avro", "source_type"),
    [
        ("TINYINT", "int", "tinyint"),
        ("INT UNSIGNED", "long", "int unsigned"),
        ("BIGINT", "long", "bigint"),
        (
            "BIGINT UNSIGNED",
            {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0},
            "bigint unsigned",
        ),
        ("DECIMAL(10, 2)", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}, "decimal(10, 2)"),
        ("DECIMAL", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 0}, "decimal"),
        ("FLOAT", "float", "float"),
        ("DOUBLE", "double", "double"),
        ("BOOLEAN", "boolean", "boolean"),
        ("VARCHAR(20)", "string", "varchar(20)"),
        ("ENUM('a', 'b')", "string", "enum('a', 'b')"),
        ("SET('a', 'b')", {"type": "array", "items": "string"}, "set('a', 'b')"),
        ("BLOB", "bytes", "blob"),
        ("DATE", {"type": "int", "logicalType": "date"}, "date"),
        ("DATETIME(6)", {"type": "long", "logicalType": "local-timestamp-micros"}, "datetime(6)"),
        ("TIMESTAMP", {"type": "long", "logicalType": "timestamp-micros"}, "timestamp"),
        ("TIME", "long", "time"),
        ("YEAR", "int", "year"),
        ("JSON", "string", "json"),
    ],
)
def test_types_of_mysql(declared: str, avro: object, source_type: str) -> None:
    found = fields("mysql", f"CREATE TABLE t (id INT PRIMARY KEY, a {declared}, b {declared} NOT NULL)")
    assert found["a"] == {"name": "a", "type": ["null", avro], "default": None, "sqlType": source_type}
    assert found["b"] == {"name": "b", "type": avro, "sqlType": source_type}


@pytest.mark.parametrize(
    ("declared", "avro"),
    [
        ("smallint", "int"),
        ("bigint", "long"),
        ("real", "double"),  # sqlglot does not tell it from float, which is PostgreSQL's double precision
        ("double precision", "double"),
        ("numeric(12, 3)", {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}),
        ("numeric", "string"),
        ("text", "string"),
        ("uuid", {"type": "string", "logicalType": "uuid"}),
        ("bytea", "bytes"),
        ("timestamp", {"type": "long", "logicalType": "local-timestamp-micros"}),
        ("timestamptz", {"type": "long", "logicalType": "timestamp-micros"}),
        ("time", {"type": "long", "logicalType": "time-micros"}),
        ("jsonb", "string"),
        ("inet", "string"),
        ("text[]", {"type": "array", "items": ["null", "string"]}),
    ],
)
def test_types_of_postgresql(declared: str, avro: object) -> None:
    found = fields("postgresql", f"CREATE TABLE shop.t (id int PRIMARY KEY, a {declared})")
    assert found["a"]["type"] == ["null", avro]


def test_serial_columns_are_never_null() -> None:
    found = fields("postgresql", "CREATE TABLE t (id int PRIMARY KEY, a serial, b bigserial, c int NULL)")
    assert [found[name]["type"] for name in "abc"] == ["int", "long", ["null", "int"]]


@pytest.mark.parametrize(
    ("declared", "default"),
    [
        ("int NOT NULL DEFAULT -5", -5),
        ("double NOT NULL DEFAULT 1.5", 1.5),
        ("varchar(9) NOT NULL DEFAULT 'x'", "x"),
        ("boolean NOT NULL DEFAULT true", True),
    ],
)
def test_literal_defaults(declared: str, default: object) -> None:
    assert fields("mysql", f"CREATE TABLE t (id INT PRIMARY KEY, a {declared})")["a"]["default"] == default


@pytest.mark.parametrize(
    "declared", ["timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP", "int NOT NULL DEFAULT (1 + 1)", "blob NOT NULL"]
)
def test_other_defaults_are_not_known(declared: str) -> None:
    assert "default" not in fields("mysql", f"CREATE TABLE t (id INT PRIMARY KEY, a {declared})")["a"]


def test_comments() -> None:
    mysql = "CREATE TABLE t (id INT PRIMARY KEY COMMENT 'it''s a number') COMMENT='things'"
    postgresql = "CREATE TABLE s.t (id int PRIMARY KEY); COMMENT ON COLUMN s.t.id IS 'it''s a number'; "
    for converted in (
        CONVERTERS["mysql"].convert(mysql, "shop"),
        CONVERTERS["postgresql"].convert(postgresql + "COMMENT ON TABLE s.t IS 'things'", "shop"),
    ):
        schema = json.loads(converted.value)
        assert (schema["doc"], schema["fields"][0]["doc"]) == ("things", "it's a number")
        assert converted.doc == "things"


@pytest.mark.parametrize("clause", ["PRIMARY KEY (b, a)", "CONSTRAINT pk PRIMARY KEY (b, a)"])
@pytest.mark.parametrize("format_", ["mysql", "postgresql"])
def test_keys_of_several_columns(format_: str, clause: str) -> None:
    converted = CONVERTERS[format_].convert(f"CREATE TABLE t (a int, b int, c int, {clause})", "shop")
    assert converted.primary_key == ("b", "a")
    assert [field["type"] for field in json.loads(converted.value)["fields"]] == ["int", "int", ["null", "int"]]


def test_names_that_avro_does_not_allow() -> None:
    converted = CONVERTERS["mysql"].convert("CREATE TABLE `order-lines` (`a b` INT PRIMARY KEY)", "cdc.my-shop")
    schema = json.loads(parse(converted.value).canonical)
    assert (schema["name"], schema["namespace"]) == ("order_lines_xa1f9", "cdc.my_shop_xd703")
    assert (schema["fields"][0]["name"], schema["fields"][0]["sqlName"]) == ("a_b_xc868", "a b")
    assert converted.primary_key == ("a_b_xc868",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CREATE TABLE t (a thing)", "has no Avro type"),
        ("CREATE TABLE t AS SELECT 1", "no columns"),
        ("CREATE TABLE t (a int); CREATE TABLE u (a int)", "2 CREATE TABLE"),
        ("CREATE TABLE t (a int); DROP TABLE t", "1 other statements"),
        ("CREATE TABLE t (a int, PRIMARY KEY (b))", "primary key of t names b"),
        ("CREATE TABLE (", "not postgres"),
        ("CREATE TABLE t (a decimal(x))", "a precision or a scale that is no whole number"),
        (f"CREATE TABLE t (a int DEFAULT {'(' * 500}1{')' * 500})", "nested too deeply"),
        (f"CREATE TABLE t (a int{'[]' * 500})", "nested too deeply"),
    ],
)
def test_sql_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConversionError, match=problem):
        CONVERTERS["postgresql"].convert(text, "shop")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("CREATE TABLE t (a int PRIMARY KEY) WITH COMPACT STORAGE", "COMPACT STORAGE"),
        ("CREATE TABLE t (a int, a int, PRIMARY KEY (a))", "stands twice"),
        ("CREATE TABLE t (a int, PRIMARY KEY (b))", "primary key of b"),
        ("CREATE TABLE t (a int PRIMARY KEY", "'\\)' is expected|',' is expected"),
        ("CREATE TABLE t (a PRIMARY KEY)", "a type is expected"),
        ("CREATE TABLE t (a int PRIMARY KEY) § ", "is not CQL"),
        ("CREATE TABLE t (a 'org.Type' PRIMARY KEY)", "custom type"),
        ("CREATE INDEX ON t (a)", "CREATE TABLE or CREATE TYPE is expected"),
        ("", "0 CREATE TABLE"),
    ],
)
def test_cql_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ConversionError, match=problem):
        CONVERTERS["cql"].convert(text, "cdc.shop")


def test_the_time_to_read_comments_rises_with_their_number() -> None:
    """Not with its square: a body may have a hundred thousand."""
    names = [f"c{number}" for number in range(3000)]
    table = f"CREATE TABLE t ({', '.join(f'{name} int' for name in names)})"
    comments = "; ".join(f"COMMENT ON COLUMN t.{name} IS 'x'" for name in names)

    def seconds(text: str) -> float:
        started = process_time()
        CONVERTERS["postgresql"].convert(text, "shop")
        return process_time() - started

    assert seconds(f"{table}; {comments}") < 5 * seconds(table)


def test_a_namespace_without_a_keyspace_has_no_cql() -> None:
    with pytest.raises(ConversionError, match=r"<topic prefix>\.<keyspace>"):
        CONVERTERS["cql"].convert("CREATE TABLE t (a int PRIMARY KEY)", "shop")


@pytest.mark.parametrize("length", range(0, 90, 7))
def test_cql_that_ends_anywhere(length: int) -> None:
    """A ConversionError, or a table that is complete."""
    text = "CREATE TABLE IF NOT EXISTS t (a int, b text, PRIMARY KEY ((a), b)) WITH comment = 'x' AND id = y"
    with contextlib.suppress(ConversionError):
        assert CONVERTERS["cql"].convert(text[:length], "cdc.shop").source == "t"


class Csv:
    """A format of somebody else's."""

    def convert(self, text: str, namespace: str) -> Converted:
        fields = [{"name": name, "type": "string"} for name in text.split(",")]
        record = {"type": "record", "name": "Row", "namespace": namespace, "fields": fields}
        return Converted("rows", json.dumps(record))


class Point:
    name = "csv"

    def load(self) -> Csv:
        return Csv()


def test_a_package_adds_a_format(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry_points(*, group: str) -> list[Point]:
        return [Point()] if group == "cassandra_schematizer.converters" else []

    monkeypatch.setattr(converters, "entry_points", entry_points)
    found = all_converters()
    assert set(found) == {"avro", "cql", "csv", "mysql", "postgresql"}
    assert found["csv"].convert("a,b", "n").source == "rows"
