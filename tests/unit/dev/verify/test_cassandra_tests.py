"""The reader of Cassandra's CQL tests, on sources of our own."""

from __future__ import annotations

import uuid
import zipfile
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from cassandra.query import UNSET_VALUE
from cassandra.util import OrderedMap
from hypothesis import given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError
from dev.verify.cassandra_tests.cases import Operation
from dev.verify.cassandra_tests.java_parser import parse_class
from dev.verify.cassandra_tests.java_tokens import JavaError, tokens
from dev.verify.cassandra_tests.java_values import Long, formatted
from dev.verify.cassandra_tests.run import MisfitError, serialized
from dev.verify.cassandra_tests.source import FOLDER, case_names, read_case, read_classes

if TYPE_CHECKING:
    from pathlib import Path

    from dev.verify.cassandra_tests.cases import Case

PARENT = """
package org.example;

public abstract class Parent extends CQLTester
{
    protected static final String NUMBER = "int";

    @Before
    public void makeType() { createType("CREATE TYPE %s (a int)"); }

    protected void insert(int k, Object... values) throws Throwable
    {
        for (Object value : values)
            execute("INSERT INTO %s (k, v) VALUES (?, ?)", k, value);
    }
}
"""
CHILD = """
/* A class of tests; "no string". */
public class ChildTest extends Parent
{
    private static final int[] KEYS = new int[]{ 1, 2 };

    // @Test in a comment
    @Test
    public void testPlain() throws Throwable
    {
        createTable("CREATE TABLE %s (k " + NUMBER + " PRIMARY KEY," +
                    " v text) WITH comment = 'it''s'");
        execute("INSERT INTO %s (k, v) VALUES (1, 'a')");
        assertRows(execute("SELECT * FROM %s WHERE k = ?", 1), row(1, "a"));
        for (int i = 2; i < 5; i++)
            execute("DELETE FROM %s WHERE k = ?", i);
        for (int k : KEYS)
        {
            if (k == 1)
                continue;
            execute(String.format("UPDATE %s SET v = '%d%%' WHERE k = %d", KEYSPACE + '.' + currentTable(), k * 2, k));
        }
        insert(7, "x", unset());
    }

    @Test(expected = InvalidRequestException.class)
    public void testValues() throws Throwable
    {
        String type = createType("CREATE TYPE %s (n int, t text)");
        createTable("CREATE TABLE %s (k uuid PRIMARY KEY, u frozen<" + KEYSPACE + "." + type + ">, l list<int>)");
        Object[] values = { list(1, 2L), set("a", "b"), map("k", 1.5f) };
        UUID id = UUID.fromString("6ba7b810-9dad-11d1-80b4-00c04fd430c8");
        execute("INSERT INTO %s (k, u, l) VALUES (?, ?, ?)", id, userType("n", 1, "t", null), values[0]);
        execute("UPDATE %s SET l = ? WHERE k = ?", new BigDecimal("1.50"), (Object) tuple(1, true, -3));
        assertInvalidMessage("no such column", "INSERT INTO %s (k, x) VALUES (1, 1)");
        try (Session session = open())
        {
            beforeAndAfterFlush(() -> { execute("TRUNCATE %s"); });
        }
        catch (Exception e) { execute("not a statement of the test"); }
        finally { schemaChange("DROP TYPE ks.other"); }
        execute("UPDATE %s SET l = ? WHERE k = ?", random.nextInt(), id);
        execute("USE " + KEYSPACE);
    }

    @Test
    public void testUnknown() { switch (1) { case 1: execute("SELECT 1"); } }

    public void helper() { execute("INSERT INTO nothing"); }
}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "test" / FOLDER
    folder.mkdir(parents=True)
    (folder / "Parent.java").write_text(PARENT)
    (folder / "ChildTest.java").write_text(CHILD)
    return tmp_path


def case_of(source: Path, name: str) -> Case:
    classes, problems = read_classes(source)
    assert problems == {}
    return read_case(classes, f"ChildTest.{name}", "ks")


def sent(case: Case) -> list[tuple[str, tuple[object, ...]]]:
    return [(operation.text, operation.values) for operation in case.operations]


def test_test_methods_become_cases(source: Path) -> None:
    classes, _ = read_classes(source)
    assert case_names(classes) == ["ChildTest.testPlain", "ChildTest.testValues", "ChildTest.testUnknown"]


def test_statements_come_in_order_with_their_values(source: Path) -> None:
    case = case_of(source, "testPlain")
    table = "ks.table_2"
    assert sent(case) == [
        ("CREATE TYPE ks.type_1 (a int)", ()),
        (f"CREATE TABLE {table} (k int PRIMARY KEY, v text) WITH comment = 'it''s'", ()),
        (f"INSERT INTO {table} (k, v) VALUES (1, 'a')", ()),
        (f"SELECT * FROM {table} WHERE k = ?", (1,)),
        *((f"DELETE FROM {table} WHERE k = ?", (number,)) for number in (2, 3, 4)),
        (f"UPDATE {table} SET v = '4%' WHERE k = 2", ()),
        (f"INSERT INTO {table} (k, v) VALUES (?, ?)", (7, "x")),
        (f"INSERT INTO {table} (k, v) VALUES (?, ?)", (7, UNSET_VALUE)),
    ]
    assert case.skipped == {}
    assert case.writes == 7
    assert case.has_table


def test_values_and_what_is_not_known(source: Path) -> None:
    case = case_of(source, "testValues")
    _, _, _, insert, update, refused, truncate, drop = sent(case)
    assert insert[1] == (uuid.UUID("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), (1, None), [1, 2])
    assert isinstance(insert[1][2], list)
    assert update[1] == (Decimal("1.50"), (1, True, -3))
    assert refused[0].startswith("INSERT INTO ks.table_3 (k, x)")
    assert truncate == ("TRUNCATE ks.table_3", ())
    assert drop == ("DROP TYPE ks.other", ())
    assert [operation.may_fail for operation in case.operations].count(True) == 1
    assert case.skipped == {"a statement with the answer of random.nextInt": 1, "USE changes the connection": 1}


def test_what_is_not_run_is_named(source: Path) -> None:
    case = case_of(source, "testUnknown")
    assert not case.writes
    assert case.skipped == {"a switch": 1}


def test_a_jar_is_read_like_a_folder(source: Path, tmp_path: Path) -> None:
    jar = tmp_path / "sources.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        archive.writestr(f"{FOLDER}Parent.java", PARENT)
        archive.writestr(f"{FOLDER}ChildTest.java", CHILD)
        archive.writestr("org/other/NoTest.java", "class NoTest {}")
    assert case_names(read_classes(jar)[0]) == case_names(read_classes(source)[0])


def test_a_source_without_tests_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CdcError):
        read_classes(tmp_path)
    (tmp_path / "x.jar").write_text("no jar")
    with pytest.raises(CdcError):
        read_classes(tmp_path / "x.jar")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CREATE TABLE a.b (k int PRIMARY KEY)", "CREATE TABLE a.b (k int PRIMARY KEY) WITH cdc = true"),
        ("create table a (k int, PRIMARY KEY (k)) with x = 1;", " AND cdc = true"),
        ("CREATE TABLE a (k int PRIMARY KEY) WITH cdc = false", "CREATE TABLE a (k int PRIMARY KEY) WITH cdc = false"),
        ("CREATE TYPE t (a int)", "CREATE TYPE t (a int)"),
        ("CREATE TABLE a LIKE b", "CREATE TABLE a LIKE b"),
        ("INSERT INTO a (k) VALUES (1)", "INSERT INTO a (k) VALUES (1)"),
    ],
)
def test_tables_are_made_with_cdc(text: str, expected: str) -> None:
    assert Operation(text).with_cdc().endswith(expected)


def test_keyspaces_that_a_test_makes_are_known() -> None:
    assert Operation("CREATE KEYSPACE IF NOT EXISTS Other WITH x").keyspace() == "other"
    assert Operation('CREATE KEYSPACE "Other" WITH x').keyspace() == "Other"
    assert Operation("DROP KEYSPACE other").keyspace() == ""


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20))
def test_a_string_is_read_as_java_reads_it(text: str) -> None:
    escaped = "".join(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else char for char in text)
    [token] = tokens(f'"{escaped}"')
    assert (token.kind, token.text) == ("string", text)


@given(st.text(alphabet='{}()[]<>;,."\\= newif(x)"1 ', max_size=40))
def test_any_body_is_parsed_or_named(body: str) -> None:
    """Damaged source raises JavaError, or leaves its method with a problem; nothing else, and no endless loop."""
    try:
        parsed = parse_class("class A { void a() {" + body + "} }")
    except JavaError:
        return
    assert all(method.body is not None or method.problem for method in parsed.methods)


@given(st.integers(-(2**31), 2**31 - 1), st.text(max_size=5))
def test_format_is_java_s(number: int, text: str) -> None:
    assert formatted("%2$s-%1$s %d%%", Long(number), text) == f"{text}-{number} {number}%"


def test_values_are_serialized_for_their_markers() -> None:
    from cassandra.cqltypes import lookup_casstype  # noqa: PLC0415 - of the driver, for this test alone

    number = lookup_casstype("Int32Type")
    assert serialized(number, 1) == b"\0\0\0\1"
    assert serialized(number, None) is None
    assert serialized(number, b"\xff") == b"\xff"
    assert serialized(lookup_casstype("MapType(UTF8Type, Int32Type)"), OrderedMap([("a", 1)]))
    with pytest.raises(MisfitError):
        serialized(number, "text")
