"""`check --for` takes default forms, and names each form of a table that stops a consumer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from cassandra_storage.formats.schema.tables import ColumnKind
from cassandra_storage.formats.types.cql_types import parse_type
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal
from cdc_common.messages.tables import message_key, to_json
from materializer.cli import main
from materializer.commands import consumer_check
from materializer.commands.consumer_check import CONSUMERS, Consumer, find_limits
from materializer.planning.table_schemas import TableSchemas
from materializer.settings import Settings
from tests.support.consumers.typed_values import KEYSPACE, TYPES, USER_TYPES, column, table_of

if TYPE_CHECKING:
    from pathlib import Path

ALL = table_of(
    "every",
    tuple(column(f"c{number}", of.type) for number, of in enumerate(TYPES)),
    clustering=(column("c", parse_type("int", KEYSPACE, {}), ColumnKind.CLUSTERING, 0),),
    static=(column("s", parse_type("text", KEYSPACE, {}), ColumnKind.STATIC),),
)


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_every_consumer_takes_every_type_in_the_default_forms(consumer: Consumer) -> None:
    found = list(find_limits(consumer, ALL, DEFAULT_FORMS))
    assert [limit for limit in found if limit.is_refused] == []
    assert all("out_of_range" in limit.fix for limit in found)  # of dates and timestamps that are no mistakes: nothing


REFUSED = {
    "decimal": "decimals=string",
    "duration": "durations=text",
    "map<text, int>": "maps=json",
    "map<int, text>": "maps=json",
    "frozen<tuple<int, text>>": "user_types=json",
    "address": "user_types=json",
    "list<frozen<address>>": "user_types=json",
    "list<blob>": "collections=json",
    "list<timestamp>": "collections=json",
    "list<frozen<list<int>>>": "collections=json",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_jdbc_sink_does_not_take_the_exact_form(name: str) -> None:
    table = table_of("t", (column("v", parse_type(name, KEYSPACE, USER_TYPES)),))
    found = [limit for limit in find_limits("jdbc", table, EXACT) if limit.is_refused]
    assert [limit.column for limit in found] == ["v"]
    assert REFUSED[name] in found[0].fix


def test_a_decimal_of_its_own_is_taken() -> None:
    table = table_of("t", (column("v", parse_type("decimal", KEYSPACE, {})),))
    assert list(find_limits("jdbc", table, EXACT._replace(fixed=(("v", FixedDecimal(10, 2)),)))) == []


def test_the_parts_of_a_column_are_looked_at_one_by_one() -> None:
    table = table_of("t", (column("v", parse_type("frozen<tuple<int, decimal>>", KEYSPACE, {})),))
    split = DEFAULT_FORMS._replace(user_types="columns")
    assert list(find_limits("jdbc", table, split)) == []
    [found] = find_limits("jdbc", table, split._replace(decimals="exact"))
    assert (found.column, found.fix) == ("v.f1", "decimals=string, or decimal(p,s) for the column")


def test_static_rows_stop_relational_consumers_alone() -> None:
    included = DEFAULT_FORMS._replace(static_rows="include")
    stopped = {
        consumer
        for consumer in CONSUMERS
        if any(finding.column == "" for finding in find_limits(consumer, ALL, included))
    }
    assert stopped == {"jdbc", "flink"}


def test_flink_needs_the_row_before() -> None:
    [found] = [
        limit
        for limit in find_limits("flink", ALL, DEFAULT_FORMS, on_large_message="without_before")
        if limit.is_refused
    ]
    assert "without_before" in found.problem


@pytest.mark.parametrize(("forms", "status"), [([], 0), (["types.every user_types=record"], 4)])
def test_the_command_says_what_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, forms: list[str], status: int
) -> None:
    schemas = TableSchemas("cdc")
    schemas.add([(message_key(ALL), to_json(ALL))])
    monkeypatch.setattr(consumer_check, "read_table_schemas", lambda _kafka: schemas)
    file = tmp_path / "cdc.toml"
    file.write_text(f"[materializer]\ntype_forms = {json.dumps(forms)}\n")
    command = ["check", "--for", "jdbc", "types.every", "--config", str(file)]
    found = CliRunner().invoke(main, command)
    assert found.exit_code == status, found.output
    assert ("a record stops the sink's task. Helps: user_types=json, or columns." in found.output) == bool(status)
    assert found.output.splitlines()[-1].startswith("jdbc takes " + ("not all" if status else "all"))


def test_an_unknown_table_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_check, "read_table_schemas", lambda _kafka: TableSchemas("cdc"))
    with pytest.raises(CdcError) as error:
        consumer_check.check_consumer(Settings(), "jdbc", "shop.orders", print)
    assert error.value.code is Code.SCHEMA_UNKNOWN
