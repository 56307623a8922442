"""The settings of forms: for the job, a table and a column, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, FixedDecimal
from cdc_common.settings.load import load_settings
from materializer.planning.table_forms import job_forms, table_forms, warn_of_static_rows
from materializer.settings import MaterializerSettings, Settings
from tests.support.materializer.raw_builder import TABLE

if TYPE_CHECKING:
    from pathlib import Path

PRICED = replace(
    TABLE,
    regular_columns=(
        ColumnMetadata("price", NativeType("decimal"), ColumnKind.REGULAR),
        ColumnMetadata('Odd "name"', NativeType("varint"), ColumnKind.REGULAR),
    ),
)


def test_the_defaults_are_the_documented_ones() -> None:
    assert job_forms(MaterializerSettings()) == DEFAULT_FORMS


def test_a_table_and_its_columns_have_forms_of_their_own() -> None:
    settings = MaterializerSettings(
        varints="bytes",
        type_forms=[
            "shop.orders maps=native  static_rows=include",
            "Shop.ORDERS.price decimal(12, 2)",
            'shop.orders."Odd ""name""" decimal(38,0)',
            "shop.others decimals=double",
            '"Shop".orders decimals=double',
        ],
    )
    assert table_forms(settings, PRICED) == DEFAULT_FORMS._replace(
        varints="bytes",
        maps="native",
        static_rows="include",
        fixed=(('Odd "name"', FixedDecimal(38, 0)), ("price", FixedDecimal(12, 2))),
    )
    assert table_forms(settings, replace(TABLE, name="third")) == DEFAULT_FORMS._replace(varints="bytes")


@pytest.mark.parametrize(
    "entry",
    [
        "orders maps=native",
        "shop.orders",
        "shop.orders maps",
        "shop.orders maps=record",
        "shop.orders forms=json",
        "shop.orders.price numeric",
        "shop.orders.price decimal(39,0)",
        "shop.orders.price decimal(0,0)",
        "shop.orders.price decimal(2,3)",
        "shop.orders decimal(2,1)",
    ],
)
def test_an_entry_that_says_nothing_is_refused_at_the_start(entry: str, tmp_path: Path) -> None:
    file = tmp_path / "cdc.toml"
    file.write_text(f"[materializer]\ntype_forms = ['''{entry}''']\n")
    with pytest.raises(CdcError) as error:
        load_settings(file, {})
    assert error.value.code is Code.CONFIG_INVALID


def test_the_environment_separates_entries_by_commas(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CDC_MATERIALIZER__TYPE_FORMS", "shop.orders.price decimal(12,2), shop.orders maps=native")
    (tmp_path / "cdc.toml").touch()
    found = load_settings(tmp_path / "cdc.toml", {}).of(Settings).materializer
    assert found.type_forms == ["shop.orders.price decimal(12,2)", "shop.orders maps=native"]


@pytest.mark.parametrize(("column", "problem"), [("gone", "no column gone"), ("k", "key column k"), ("a", "neither")])
def test_a_column_that_cannot_be_a_decimal_stops_its_table(column: str, problem: str) -> None:
    settings = MaterializerSettings(type_forms=[f"shop.orders.{column} decimal(12,2)"])
    with pytest.raises(CdcError, match=problem) as error:
        table_forms(settings, TABLE)
    assert error.value.code is Code.CONFIG_INVALID


def test_a_table_with_static_columns_says_what_becomes_of_its_partitions() -> None:
    with capture_logs() as logs:
        warn_of_static_rows(TABLE, DEFAULT_FORMS)
        warn_of_static_rows(TABLE, DEFAULT_FORMS._replace(static_rows="include"))
        warn_of_static_rows(replace(TABLE, static_columns=()), DEFAULT_FORMS)
    assert [(entry["log_level"], entry["static_rows"]) for entry in logs] == [
        ("warning", "leave_out"),
        ("warning", "include"),
    ]
