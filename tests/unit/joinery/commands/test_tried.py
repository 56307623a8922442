"""The command try: what it prints, and what it refuses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from dev.local_stack.process.paths import project_root
from joinery.cli import main

if TYPE_CHECKING:
    from pathlib import Path

GUIDE = (project_root() / "docs" / "guides" / "joins.md").read_text()
JOINS, CASE = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
OUTPUT = re.findall(r"```text\n(.*?)```", GUIDE, re.DOTALL)[0]


def run(folder: Path, joins: str = JOINS, case: str = CASE) -> tuple[int, str]:
    for name, text in (("joins.toml", joins), ("case.toml", case)):
        (folder / name).write_text(text)
    done = CliRunner().invoke(main, ["try", str(folder / "joins.toml"), str(folder / "case.toml")])
    return done.exit_code, done.output


def test_the_guides_case(tmp_path: Path) -> None:
    assert run(tmp_path) == (0, OUTPUT)


def test_other_rows_than_expected(tmp_path: Path) -> None:
    status, output = run(tmp_path, case=CASE.replace("expected = [{ order_id = 1,", "expected = [{ order_id = 2,"))
    assert status == 1
    assert output.startswith(OUTPUT)
    rest = output.removeprefix(OUTPUT).splitlines()
    assert rest[0] == 'missing: {"user_id": 8, "order_id": 2, "total": 9.5, "name": null}'
    assert rest[1] == 'not expected: {"user_id": 8, "order_id": 1, "total": 9.5, "name": null}'
    assert "CDC-146" in rest[2]
    assert "1 expected rows are missing, and 1 others are there" in rest[2]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{ id = 1, user_id = 7, total = 9.5 } }", '{ id = 1, total = "much" } }', "change 1, of o: total has a value"),
        ("{ id = 1, user_id = 7, total = 9.5 } }", "{ user_id = 7 } }", "change 1, of o: id has a value"),
        ("{ id = 1, user_id = 7, total = 9.5 } }", "{ id = 1, user = 7 } }", "change 1, of o: it has user, and id, "),
        ("{ u = { id = 7 }, delete", "{ u = { id = 9 }, delete", "change 4, of u: it deletes a row that is not there"),
        ('"double?"', '"dubble?"', "the type of o.total is none of Avro's"),
        ('join = "orders-of-users"', 'join = "others"', "there is no join 'others': the file has orders-of-users"),
        ("expected = [{ order_id", "expected = [{ order", "an expected row has order, and joined rows have user_id, "),
    ],
)
def test_a_case_that_does_not_fit(old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert CASE.count(old) == 1
    status, output = run(tmp_path, case=CASE.replace(old, new))
    assert status == 1
    assert "CDC-146" in output
    assert "case.toml" in output
    assert reason in output


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("{ u = { id = 7 }, delete = true }", "{ x = { id = 7 } }", "change 4 names ['x'], and one of o, u is wanted"),
        ("{ u = { id = 7 }, delete = true }", "7", "change 4 is not a table"),
        ('input.u.key = ["id"]', 'input.u.key = ["nr"]', "its key has nr, which is none of its columns"),
        ("changes = [", "changed = [", "changed is not valid: Extra inputs are not permitted"),
    ],
)
def test_a_case_that_is_not_valid(old: str, new: str, reason: str, tmp_path: Path) -> None:
    assert CASE.count(old) == 1
    status, output = run(tmp_path, case=CASE.replace(old, new))
    assert status == 2
    assert "CDC-002" in output
    assert reason in output


def test_a_join_that_does_not_fit_the_case(tmp_path: Path) -> None:
    status, output = run(tmp_path, joins=JOINS.replace("o.total", "o.totals"))
    assert status == 4
    assert 'CDC-120: join "orders-of-users" does not fit the schemas of its inputs: o.totals does not exist' in output


def test_inputs_of_another_join(tmp_path: Path) -> None:
    status, output = run(tmp_path, joins=JOINS.replace("o.", "p.").replace("input.o", "input.p"))
    assert status == 1
    assert "its inputs are o, u, and those of the join p, u" in output


def test_a_limit_names_its_change(tmp_path: Path) -> None:
    case = CASE.replace("  { u = { id = 7, name", "  { o = { id = 2, user_id = 7 } },\n  { u = { id = 7, name")
    status, output = run(tmp_path, joins=JOINS.replace("1_000_000", "1"), case=case)
    assert status == 1
    assert "change 3, of u: it changes 2 joined rows, and the limit is 1" in output


def test_bytes_are_hexadecimal(tmp_path: Path) -> None:
    case = CASE.replace('"double?"', '"bytes?"').replace("9.5", '"0aff"')
    status, output = run(tmp_path, case=case)
    assert status == 0, output
    assert output == OUTPUT.replace("9.5", '"0aff"')
    status, output = run(tmp_path, case=case.replace("0aff", "0afg"))
    assert status == 1
    assert "bytes are written in hexadecimal digits" in output
