"""Messages that cannot become rows stop their table at its last load. The error names the place, and never a value."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages import wire
from tests.support.warehouse.load_checks import check_equal
from tests.support.warehouse.scene import ID, KEY_ID, KEY_SCHEMA, Shop, Warehouse, envelope, key_bytes, nullable
from warehouse.tables.forms import CHANGES, CURRENT, HISTORY, Form
from warehouse.targets.duckdb import DuckDbConnection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SECRET = "sesame"
PLACE = 2
"""The offset of the bad message in partition 1."""


@pytest.fixture(params=[CURRENT, CHANGES, HISTORY], ids=lambda form: form.name)
def form(request: pytest.FixtureRequest) -> Form:
    found: Form = request.param
    return found


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def warehouse(shop: Shop, tmp_path: Path, form: Form) -> Iterator[Warehouse]:
    made = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0), form)
    yield made
    made.close()


def change(shop: Shop, **more: Any) -> bytes:  # noqa: ANN401 - fields
    """A change message, with other fields than it should have."""
    fields = {
        "op": "u",
        "before": None,
        "after": {"id": 1, "name": SECRET},
        "source": {"ts_us": 0, "row_sequence": 9},
        "ts_ms": 0,
    }
    return shop.topic.encode(10, {**fields, **more})


def no_key(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return None, change(shop)


def key_that_is_not_avro(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return b"\1" + SECRET.encode(), change(shop)


def value_that_is_not_avro(_shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), SECRET.encode()


def value_that_is_cut(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), change(shop)[:-4]


def value_that_is_too_long(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), change(shop) + b"\0"


def unpaired_surrogate(shop: Shop) -> tuple[bytes | None, bytes | None]:
    """UTF-8 has no surrogates; some programs write them, as three bytes."""
    return key_bytes(1), change(shop).replace(b"sesame", b"se\xed\xa0\x80e")


def deletion_with_a_row(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), change(shop, op="d")


def change_without_a_row(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), change(shop, after=None)


def operation_that_no_one_knows(shop: Shop) -> tuple[bytes | None, bytes | None]:
    return key_bytes(1), change(shop, op="t")


BAD = (
    no_key,
    key_that_is_not_avro,
    value_that_is_not_avro,
    value_that_is_cut,
    value_that_is_too_long,
    unpaired_surrogate,
    deletion_with_a_row,
    change_without_a_row,
    operation_that_no_one_knows,
)


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_a_bad_message_stops_its_table(
    shop: Shop, warehouse: Warehouse, make: Callable[[Shop], tuple[bytes | None, bytes | None]]
) -> None:
    shop.put(1, 10, name="Ada")
    shop.put(3, 10, name="Bob")
    warehouse.run()
    key, value = make(shop)
    shop.topic.send(1, value, key)
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_MESSAGE
    assert f"The message at offset {PLACE} of cdc.shop.orders-1 " in caught.value.problem
    assert SECRET not in str(caught.value)
    assert "Find out who sent it." in caught.value.fix
    check_equal(shop, warehouse)
    assert sum(warehouse.offsets().values()) == PLACE


def test_a_decimal_with_more_digits_than_its_schema_says(tmp_path: Path) -> None:
    """Avro's libraries do not check the digits. The warehouse refuses the value, in whatever way it can."""
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    shop = Shop(schemas={KEY_ID: KEY_SCHEMA, 10: envelope([ID, nullable("price", kind)])})
    warehouse = Warehouse(shop.topic, lambda: DuckDbConnection(tmp_path / "w.duckdb", 1.0))
    shop.put(1, 10, price=Decimal("99.99"))
    warehouse.run()
    plain = {**kind, "logicalType": "none"}
    unchecked = Shop(schemas={KEY_ID: KEY_SCHEMA, 10: envelope([ID, nullable("price", plain)])})
    wide = {
        "op": "u",
        "before": None,
        "after": {"id": 1, "price": (10**9).to_bytes(5, "big")},
        "source": {"ts_us": 0, "row_sequence": 9},
        "ts_ms": 0,
    }
    shop.topic.send(1, unchecked.topic.encode(10, wide), wire.header(KEY_ID) + key_bytes(1)[wire.HEADER_SIZE :])
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code in {Code.WAREHOUSE_MESSAGE, Code.WAREHOUSE_VALUE, Code.WAREHOUSE_TABLE}
    assert "1000000000" not in str(caught.value)
    assert warehouse.rows() == [{"id": 1, "price": Decimal("99.99")}]
    warehouse.close()


@pytest.mark.parametrize(
    ("altered", "problem"),
    [
        ("ALTER TABLE {table} DROP COLUMN name", "name"),
        ("ALTER TABLE {table} RENAME COLUMN name TO theirs", "name"),
        ("ALTER TABLE {table} ADD COLUMN qty INTEGER", "qty"),
    ],
    ids=["dropped", "renamed", "added"],
)
def test_a_table_that_was_altered_by_hand(shop: Shop, warehouse: Warehouse, altered: str, problem: str) -> None:
    """The error names the column that the load needs, or that is there already."""
    shop.put(1, 10, name="Ada")
    warehouse.run()
    run = warehouse.loader.connection.run
    table = f'"{warehouse.table.schema}"."{warehouse.table.table}"'
    run(altered.format(table=table))
    warehouse.loader.connection.release()
    shop.put(1, 11, name="Bob", qty=1)
    with pytest.raises(CdcError) as caught:
        warehouse.run()
    assert caught.value.code is Code.WAREHOUSE_TABLE
    assert problem in caught.value.problem
    assert "Bob" not in str(caught.value)
