"""Writes what docs say of consumers from what their tests run and expect: `python -m tests.support.consumers.page`.

docs/reference/types-by-consumer.md is made whole. In docs/guides/consumers/*.md, the block of code after a comment
`<!-- run: PATH -->` is the file at PATH, which a test runs, and the table after `<!-- types: CONSUMER -->` is fresh.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.types.cql_types import type_text
from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from dev.local_stack.process.paths import project_root
from dev.tools.reference.markdown import markdown_table
from tests.support.consumers.sql_types import DUCKDB_TYPES, FLINK_TYPES, SPARK_TYPES, SqlTypes
from tests.support.consumers.typed_values import POSTGRESQL, STOPPED, TYPES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.consumers.typed_values import Typed

ROOT = project_root()
PAGE = ROOT / "docs" / "reference" / "types-by-consumer.md"
GUIDES = ROOT / "docs" / "guides" / "consumers"
HEAD = """\
# Types by consumer

This page is made from the tests of consumers (`tests/servers/consumers`). They write ordinary values,
null, empty and extreme values of each type, updates and deletes, and compare what each consumer shows with what was
written.

- *PostgreSQL*: the type of the column that Debezium's JDBC sink 3.4 makes in PostgreSQL.
- *Exact*: the forms nearest to Cassandra's bytes: `decimals = "exact"`, `varints = "bytes"`, `durations` and
  `user_types` = `"record"`, `maps` and `collections` = `"native"`.
- *Flink*: the type that a table of Flink SQL 2.2 declares.
- Spark 4.0, DuckDB 1.4, and clients in Python, Java, Go and JavaScript read all of both forms.

"""
LANGUAGES = {"js": "js", "java": "java", "go": "go", "py": "python", "sql": "sql", "properties": "properties"}
_RUN = re.compile(r"(<!-- run: (\S+) -->\n)(\n```.*?\n```\n)?", re.DOTALL)
_TYPES = re.compile(r"(<!-- types: (\w+) -->\n)(\n(?:\|.*\n)+)?")
_SQL_TYPES: dict[str, SqlTypes] = {"flink": FLINK_TYPES, "spark": SPARK_TYPES, "duckdb": DUCKDB_TYPES}
_SAME = "the same"


def page() -> str:
    head = ("CQL", "default", "PostgreSQL", "Flink", "exact", "the JDBC sink with it", "Flink with it")
    return HEAD + markdown_table(head, map(_row, TYPES)) + "\n"


def guide(text: str) -> str:
    """The page of one consumer with its code and its table as they are now."""
    text = _RUN.sub(lambda found: f"{found[1]}\n{code(ROOT / found[2])}", text)
    return _TYPES.sub(lambda found: f"{found[1]}\n{types_table(found[2])}", text)


def code(file: Path) -> str:
    return f"```{LANGUAGES[file.suffix[1:]]}\n{file.read_text().rstrip()}\n```\n"


def types_table(consumer: str) -> str:
    """Of each type, the consumer's own type in both forms."""
    if consumer == "jdbc":
        rows = [(type_text(of.type), POSTGRESQL[of.name], _jdbc_exact(of)) for of in TYPES]
        return markdown_table(("CQL", "PostgreSQL", "in the exact form"), rows) + "\n"
    sql = _SQL_TYPES[consumer]
    rows = []
    for of in TYPES:
        default, exact = sql.of(_schema(of, DEFAULT_FORMS)), sql.of(_schema(of, EXACT))
        rows.append((type_text(of.type), _code(default), _SAME if default == exact else _code(exact)))
    return markdown_table(("CQL", "default form", "exact form"), rows) + "\n"


def _row(of: Typed) -> tuple[str, ...]:
    default, exact = _schema(of, DEFAULT_FORMS), _schema(of, EXACT)
    flink, flink_exact = FLINK_TYPES.of(default), FLINK_TYPES.of(exact)
    return (
        type_text(of.type),
        _words(default),
        POSTGRESQL[of.name],
        _code(flink),
        _SAME if _words(default) == _words(exact) else _words(exact),
        _jdbc_exact(of),
        _SAME if flink == flink_exact else _code(flink_exact),
    )


def _jdbc_exact(of: Typed) -> str:
    if of.name in STOPPED:
        return "stops"
    is_same = _words(_schema(of, DEFAULT_FORMS)) == _words(_schema(of, EXACT))
    return _SAME if is_same else "other values: see the guide"


def _code(text: str) -> str:
    """As code: a type in angle brackets would be a link in Markdown."""
    plain = text.replace("`", "")
    return f"`{plain}`"


def _schema(of: Typed, forms: TypeForms) -> Any:  # noqa: ANN401 - Avro's JSON
    return AvroTypes("t", forms).column("c", of.type).schema


def _words(schema: Any) -> str:  # noqa: ANN401 - Avro's JSON
    if isinstance(schema, str):
        return schema
    if schema.get("connect.name") == "io.debezium.data.Json":
        return "JSON string"
    match schema["type"]:
        case "array":
            return f"array of {_words(schema['items'])}"
        case "map":
            return f"map of {_words(schema['values'])}"
        case "record":
            return f"record {schema['name']}"
    return f"{schema['type']} {schema.get('logicalType', '')}".strip()


if __name__ == "__main__":
    PAGE.write_text(page())
    for file in sorted(GUIDES.glob("*.md")):
        file.write_text(guide(file.read_text()))
