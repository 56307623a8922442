"""A joins file: what is read of it, and errors that name file and place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from joinery.conditions import Column
from joinery.definition_file import load_joins

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """[[join]]
name = "one"
target = { namespace = "shop", source = "joined" }
input.o = { namespace = "shop", source = "orders" }
input.u = { namespace = "shop", source = "users", optional = true }
"""
ON = 'on = ["o.user_id = u.id"]\n'
SECOND = """[[join]]
name = "two"
target = { namespace = "shop", source = "orders" }
input.j = { namespace = "shop", source = "joined" }
input.p = { namespace = "shop", source = "products" }
on = ["j.product = p.id"]
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "joins.toml"
    file.write_text(text)
    return file


def test_a_join(tmp_path: Path) -> None:
    (join,) = load_joins(write(tmp_path, HEAD + ON + 'select = ["o.*", "u.name as user_name", "o.id AS nr"]'))
    assert join.columns() == [{"o": "user_id", "u": "id"}]
    assert join.renames() == {Column("u", "name"): "user_name", Column("o", "id"): "nr"}
    assert [given.optional for given in join.input.values()] == [False, True]


def test_several_conditions_and_inputs(tmp_path: Path) -> None:
    more = 'input.x = { namespace = "shop", source = "extras" }\n'
    on = 'on = ["o.user_id = u.id", "o.day = u.day", "u.id = x.user", "x.day = o.day"]\n'
    (join,) = load_joins(write(tmp_path, HEAD + more + on))
    assert join.columns() == [{"o": "user_id", "u": "id", "x": "user"}, {"o": "day", "u": "day", "x": "day"}]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", ", join", "Field required"),
        ("join = []", ", join", "at least 1 item"),
        (HEAD, ', join "one", on', "Field required"),
        (HEAD + "on = []", ', join "one", on', "at least 1 item"),
        (HEAD + ON + "most_row = 1", ', join "one", most_row', "Extra inputs"),
        (HEAD + ON + "most_rows = 0", ', join "one", most_rows', "greater than or equal to 1"),
        (HEAD + ON + "input.o.optionl = true", ', join "one"', ""),
        (HEAD + 'on = ["o.user_id == u.id"]', ', join "one"', "is not of the form `input.column = input.column`"),
        (HEAD + 'on = ["o.a = o.b"]', ', join "one"', "compares two columns of one input"),
        (HEAD + 'on = ["o.a = x.b"]', ', join "one"', "names x.b, and there is no input 'x'"),
        (HEAD + 'on = ["o.a = u.b", "u.b = o.a"]', ', join "one"', "follows from those before it: leave it out"),
        (
            HEAD + 'on = ["o.a = u.b", "u.b = o.c"]',
            ', join "one"',
            "compare o.a and o.c, which are columns of one input",
        ),
        (
            HEAD + 'input.x = { namespace = "shop", source = "extras" }\n' + ON,
            ', join "one"',
            "no condition joins the input 'x' with the others",
        ),
        (
            HEAD + 'input.x = { namespace = "shop", source = "extras" }\non = ["o.a = u.b", "u.c = x.d"]',
            ', join "one"',
            "o.a = u.b has no column of 'x': all inputs of a join have the same join key. Write two joins",
        ),
        (HEAD + ON + 'input.o.where = ["total = high"]', ', join "one"', ""),
        (
            HEAD.replace('"orders" }', '"orders", where = ["total = high"] }') + ON,
            ', join "one", input, o',
            "the filter 'total = high' is not of the form `column >= 10`",
        ),
        (HEAD + ON + 'select = ["o.a.b"]', ', join "one"', "is not of the form `input.column`"),
        (HEAD + ON + 'select = ["x.a"]', ', join "one"', "select names x.a, and there is no input 'x'"),
        (HEAD + ON + 'select = ["o.a", "o.a as b"]', ', join "one"', "select has o.a twice"),
        (HEAD.replace('"joined"', '"users"') + ON, ', join "one"', "its target shop.users is one of its inputs"),
        (HEAD.replace('"joined"', '"joined-v2"') + ON, ', join "one", target, source', "ends as a later topic"),
        (HEAD + ON + HEAD + ON, "", "the join 'one' is there twice"),
        (HEAD + ON + SECOND, "", "is made from itself"),
    ],
)
def test_what_is_not_valid(tmp_path: Path, text: str, place: str, reason: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(CdcError) as caught:
        load_joins(file)
    if reason:
        assert caught.value.code is Code.CONFIG_INVALID
        assert caught.value.problem.startswith(f"{file}{place} is not valid: ")
        assert reason in caught.value.problem
    else:
        assert caught.value.code is Code.CONFIG_FILE


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CdcError, match="cannot be read"):
        load_joins(tmp_path / "joins.toml")


def test_the_targets_of_joins_may_be_inputs(tmp_path: Path) -> None:
    joins = load_joins(write(tmp_path, SECOND.replace('source = "orders"', 'source = "whole"') + HEAD + ON))
    assert [join.name for join in joins] == ["two", "one"]
