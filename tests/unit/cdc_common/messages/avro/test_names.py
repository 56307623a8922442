from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from cdc_common.messages.avro.names import avro_name, avro_names, namespace

AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def test_names_that_avro_allows_stay() -> None:
    assert avro_names(["id", "Order_1", "_x"]) == {"id": "id", "Order_1": "Order_1", "_x": "_x"}


def test_other_names_are_escaped() -> None:
    assert [avro_name(name) for name in ("a b", "größe", "1st", "1", "😀", "")] == [
        "a_x0020_b",
        "gr_x00F6__x00DF_e",
        "_x0031_st",
        "_x0031_",
        "_x1F600_",
        "_",
    ]


def test_collisions() -> None:
    assert avro_names(["a b", "a_x0020_b", "a_x0020_b_"]) == {
        "a_x0020_b": "a_x0020_b",
        "a_x0020_b_": "a_x0020_b_",
        "a b": "a_x0020_b__",
    }
    assert avro_names(["x", ""], taken=frozenset(["x", "_"])) == {"x": "x_", "": "__"}


@given(st.sets(st.text(max_size=4) | st.from_regex(AVRO_NAME, fullmatch=True)), st.sets(st.text(max_size=4)))
def test_names_are_valid_and_unique_and_valid_ones_stay(names: set[str], more: set[str]) -> None:
    mapped = avro_names(names | more)
    assert all(AVRO_NAME.fullmatch(name) for name in mapped.values())
    assert len(set(mapped.values())) == len(mapped) == len(names | more)
    assert all(mapped[name] == name for name in names if AVRO_NAME.fullmatch(name))


def test_namespace() -> None:
    assert namespace("my-cdc.eu", "shop", "1st") == "my_x002D_cdc.eu.shop._x0031_st"
