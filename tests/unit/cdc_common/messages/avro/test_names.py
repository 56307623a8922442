from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages.avro.names import avro_name, avro_names, namespace

AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def test_names_that_avro_allows_stay() -> None:
    assert avro_names(["id", "Order_1", "_x"]) == {"id": "id", "Order_1": "Order_1", "_x": "_x"}


def test_other_names_stay_readable() -> None:
    assert [avro_name(name) for name in ("sum-größe", "a b", "1st", "Prix (€)", "Łódź", "")] == [
        "sum_grosse_xbbfb",
        "a_b_xc868",
        "_1st_xe01d",
        "Prix_____x936e",
        "Lodz_xbc88",
        "_",
    ]


def test_names_of_other_scripts_are_escaped() -> None:
    assert [avro_name(name) for name in ("价格", "ж", "Ɡ", "größe ж")] == [
        "_x4EF7__x683C_",
        "_x0436_",
        "_xA7AC_",  # came with Unicode 7, which not every Python has
        "gr_x00F6__x00DF_e_x0020__x0436_",
    ]


def test_names_that_read_alike_differ() -> None:
    assert len({avro_name(name) for name in ("a b", "a-b", "a.b", "á b", "a_b")}) == 5


def test_collisions() -> None:
    assert avro_names(["a b", "a_b_xc868", "a_b_xc868_"]) == {
        "a_b_xc868": "a_b_xc868",
        "a_b_xc868_": "a_b_xc868_",
        "a b": "a_b_xc868__",
    }
    assert avro_names(["x", ""], taken=frozenset(["x", "_"])) == {"x": "x_", "": "__"}


@given(st.sets(st.text(max_size=4) | st.from_regex(AVRO_NAME, fullmatch=True)), st.sets(st.text(max_size=4)))
def test_names_are_valid_and_unique_and_valid_ones_stay(names: set[str], more: set[str]) -> None:
    mapped = avro_names(names | more)
    assert all(AVRO_NAME.fullmatch(name) for name in mapped.values())
    assert len(set(mapped.values())) == len(mapped) == len(names | more)
    assert all(mapped[name] == name for name in names if AVRO_NAME.fullmatch(name))


def test_namespace() -> None:
    assert namespace("my-cdc.eu", "shop", "1st") == "my_cdc_x0b7c.eu.shop._1st_xe01d"
