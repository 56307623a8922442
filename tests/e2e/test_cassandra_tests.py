"""`make verify WHAT=cassandra-tests` on sources of our own: cases that agree, and a history in which one differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dev.verify.cassandra_tests.batch import Batch, Tools
from dev.verify.cassandra_tests.run import Sender
from dev.verify.cassandra_tests.source import FOLDER, case_names, read_case, read_classes
from dev.verify.model.check import SINGLE
from dev.verify.model.topic_settler import TopicSettler

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient
    from dev.local_stack.servers.addresses import Servers
    from dev.local_stack.servers.stack import Stack
    from dev.verify.cassandra_tests.run import Outcome

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

SOURCE = """
public class SmallTest extends CQLTester
{
    @Test
    public void testRows() throws Throwable
    {
        createTable("CREATE TABLE %s (k int, \\"C.1\\" text, s int static, v list<int>, PRIMARY KEY (k, \\"C.1\\"))");
        for (int i = 0; i < 3; i++)
            execute("INSERT INTO %s (k, \\"C.1\\", v) VALUES (?, ?, ?)", i, "x", list(i, i));
        execute("UPDATE %s SET s = 5 WHERE k = 1");
        execute("INSERT INTO %s (k, \\"C.1\\", v) VALUES (?, ?, ?)", 2, "x", list(2, 2));
        execute("DELETE FROM %s WHERE k = ? AND \\"C.1\\" = ?", 0, "x");
        assertInvalid("INSERT INTO %s (k) VALUES ('text')");
        execute("INSERT INTO %s (k, nothing) VALUES (1, 1)");
    }

    @Test
    public void testTypes() throws Throwable
    {
        String type = createType("CREATE TYPE %s (n int, t text)");
        createTable("CREATE TABLE %s (k int PRIMARY KEY, u frozen<" + KEYSPACE + '.' + type + ">)");
        execute("INSERT INTO %s (k, u) VALUES (?, ?)", 1, userType("n", 1, "t", "x"));
        execute("INSERT INTO %s (k, u) VALUES (?, ?)", "no number", null);
        createTable("CREATE TABLE %s (k int PRIMARY KEY, n counter)");
        execute("UPDATE %s SET n = n + 3 WHERE k = 1");
    }
}
"""


@pytest.fixture
def tools(client: CqlClient, servers: Servers, stack: Stack) -> Tools:
    settler = TopicSettler(client, servers, SINGLE, lambda: None)
    return Tools(client, servers, Sender(client, SINGLE), settler, stack.check)


def run(tools: Tools, tmp_path: Path, prefix: str, batch_type: type[Batch] = Batch) -> tuple[list[Outcome], Batch]:
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    (folder / "SmallTest.java").write_text(SOURCE)
    classes, _ = read_classes(tmp_path)
    names = case_names(classes)
    cases = [(read_case(classes, name, f"{prefix}_{at}"), f"{prefix}_{at}") for at, name in enumerate(names)]
    batch = batch_type(tools, cases)
    return batch.run(), batch


@pytest.mark.timeout(1000)
def test_cases_agree_with_select(tools: Tools, tmp_path: Path) -> None:
    [rows, types], batch = run(tools, tmp_path, "small")
    tools.settler.__exit__(None, None, None)
    assert rows.accepted == {"schema": 1, "write": 6}
    assert (rows.refused, sum(rows.unexpected.values())) == (2, 1)
    assert types.accepted == {"schema": 3, "write": 2}
    assert types.case.skipped == {"a str for a marker of type int": 1}
    assert batch.rows == 4
    assert batch.changes >= 10
    assert [outcome.problems for outcome in (rows, types)] == [[], []]


class LosingBatch(Batch):
    """Loses the first change of a list."""

    def _take(self, changes: list[Change]) -> None:
        lost = next(
            (change for change in changes if change.value and (change.value["after"] or {}).get("v") == [1, 1]), None
        )
        super()._take([change for change in changes if change is not lost])


@pytest.mark.timeout(1000)
def test_a_change_that_is_lost_is_found(tools: Tools, tmp_path: Path) -> None:
    [rows, types], _ = run(tools, tmp_path, "losing", LosingBatch)
    tools.settler.__exit__(None, None, None)
    assert any("is not the after of the change before it" in line for line in rows.problems)
    assert types.problems == []
