"""`make follow TABLE=…` says why nothing will come."""

from __future__ import annotations

import pytest

from dev.local_stack.clients.follow import silence

CDC = [("cdc_filler", "padding"), ("shop", "orders"), ("shop", "stock")]
TABLES = [*CDC, ("shop", "notes"), ("system", "local")]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("shop.orders", ""),
        (
            "shop.notes",
            "shop.notes has cdc = false, so no change comes out. In make cqlsh: ALTER TABLE shop.notes ",
        ),
        ("shop.order", "There is no table shop.order yet; its changes come out once it is there."),
    ],
)
def test_a_table_without_changes_is_explained(table: str, said: str) -> None:
    note = silence(table, TABLES, CDC)
    assert note.startswith(said)
    assert bool(note) == bool(said)


def test_a_name_with_a_mistake_shows_those_to_choose_from() -> None:
    assert silence("shop.order", TABLES, CDC).endswith("Tables with cdc = true: shop.orders, shop.stock.")
