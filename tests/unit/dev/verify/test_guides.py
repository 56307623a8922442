"""The commands that `make verify WHAT=guides` finds in the guides, and what its reader makes of them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.verify.hosts import guide_page
from dev.verify.hosts.guide_page import Item, items_of
from dev.verify.hosts.guides import LATER
from dev.verify.hosts.reader import CHECKOUT, Reader, matches, quoted
from dev.verify.hosts.texts import NOT_RUN, PAGES, REPLACED

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """# Page

Run `cassandra-publisher status` first, not `status`; see `nodetool
flush`.

## Rights

```cql
CREATE ROLE a WITH LOGIN = true;  -- a comment
GRANT SELECT ON
  KEYSPACE b TO a;
```

<!-- guide: at the end -->
```sh
# a comment
kafka-acls.sh --add \\
  --topic 'a b'   # and this
```

```
output of a program
cassandra-filler run   # a comment
```

```sh
cd folder
cassandra-commitlog info x
cassandra-archive pack a.tar.gz
cassandra-schematizer topics check
```

```toml
a = 1
```
"""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "page.md").write_text(PAGE)
    monkeypatch.setattr(guide_page, "GUIDES", tmp_path)
    return "page.md"


STATUSES = {"cassandra-publisher status": (4,)}


class Typed:
    """A host that notes what is typed, and refuses what has `wrong` in it."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.folders: list[str] = []
        self.output = ""

    def run(self, command: str, *, folder: str = "", seconds: float = 0.0, statuses: tuple[int, ...] = (0,)) -> str:
        self.commands.append(command)
        self.folders.append(folder)
        assert statuses == ((4,) if "publisher status" in command else (0,))
        if "wrong" in command:
            raise CdcError(Code.SERVER_FAILED, "It ended with 1.", "See its output.")
        return self.output or f"{folder}{seconds}"


def reader(host: Typed, not_run: dict[str, str]) -> Reader:
    return Reader(host, {"KEYSPACE.TABLE": "shop.orders"}, not_run, {"a = 1*": lambda _: None}, STATUSES)  # type: ignore[arg-type]


def test_what_a_page_shows_in_its_order(page: str) -> None:
    assert [(item.kind, item.text, item.heading, item.later) for item in items_of(page)] == [
        ("command", "cassandra-publisher status", "Page", ""),
        ("command", "nodetool flush", "Page", ""),
        ("statement", "CREATE ROLE a WITH LOGIN = true", "Rights", ""),
        ("statement", "GRANT SELECT ON KEYSPACE b TO a", "Rights", ""),
        ("command", "kafka-acls.sh --add --topic 'a b'", "Rights", "at the end"),
        ("command", "cassandra-filler run", "Rights", ""),
        ("command", "cd folder", "Rights", ""),
        ("command", "cassandra-commitlog info x", "Rights", ""),
        ("command", "cassandra-archive pack a.tar.gz", "Rights", ""),
        ("command", "cassandra-schematizer topics check", "Rights", ""),
        ("toml", "a = 1\n", "Rights", ""),
    ]


def test_a_reader_types_it_and_keeps_for_later_what_is_for_later(page: str) -> None:
    host = Typed()
    reading = reader(host, {"nodetool *": "there is no node"})
    reading.read(page)
    as_user = "sudo -u cassandra env $(cat /etc/cdc/publisher.env) /opt/cassandra-cdc/bin"
    assert host.commands[0] == f"{as_user}/cassandra-publisher status 2>&1"
    assert host.commands[1] == "cqlsh -e 'CREATE ROLE a WITH LOGIN = true'"
    assert not [command for command in host.commands if "kafka" in command]
    assert reading.unread() == [f"docs/guides/{page}, Rights: not reached: kafka-acls.sh --add --topic 'a b'"]
    assert host.commands[-3:] == [
        "/opt/cassandra-cdc/bin/cassandra-commitlog info x 2>&1",
        "/opt/cassandra-cdc/bin/cassandra-archive pack a.tar.gz 2>&1",
        "sudo -u root env $(cat /etc/cdc/topics.env) /opt/cassandra-cdc/bin/cassandra-schematizer topics check 2>&1",
    ]
    assert host.folders[-4:] == [CHECKOUT, *[f"{CHECKOUT}/folder"] * 3]
    reading.read_later(page, "at the end")
    assert host.commands[-1] == "kafka-acls.sh --add --topic 'a b'"
    assert reading.unread() == []
    assert reading.reasons == {"there is no node": ["nodetool flush"]}
    assert (reading.counts, reading.wrong) == ({"run": 10, "again": 0, "not run": 1}, [])


def test_a_wrong_word_is_found(page: str) -> None:
    host = Typed()
    reading = reader(host, {})
    (guide_page.GUIDES / page).write_text("# Page\n\n`cassandra-filler wrong KEYSPACE.TABLE`\n")
    reading.read(page)
    [found] = reading.wrong
    assert found.startswith("docs/guides/page.md, Page: cassandra-filler wrong KEYSPACE.TABLE\n")
    assert host.commands[0].endswith("cassandra-filler wrong shop.orders 2>&1")


def test_a_line_of_kafkas_client_is_wrong(page: str) -> None:
    host = Typed()
    host.output = "done\n%6|1795752344.875|BGQUEUE|rdkafka#producer-3| [thrd:background]: Purging 1 unserved events\n"
    reading = reader(host, {})
    (guide_page.GUIDES / page).write_text("# Page\n\n`cassandra-filler status`, `nodetool status`\n")
    reading.read(page)
    [found] = reading.wrong
    assert "BGQUEUE" in found


def test_a_reason_that_nothing_needs_is_found(page: str) -> None:
    reading = reader(Typed(), {"nodetool decommission": "never"})
    reading.read(page)
    assert "no guide has 'nodetool decommission' any more" in reading.unread()


def test_a_word_of_bash() -> None:
    text = 'it\'s "$HOME"'
    done = subprocess.run(["/bin/bash", "-c", f"printf %s {quoted(text)}"], capture_output=True, text=True, check=True)
    assert done.stdout == text


def test_what_is_not_run_and_what_is_replaced_is_in_the_guides() -> None:
    items = [item for name in PAGES for item in items_of(name)]
    assert any(item.later == LATER for item in items)

    assert [text for text in NOT_RUN if not any(matches(text, item) for item in items)] == []
    assert [text for text in REPLACED if not any(text in item.text for item in items)] == []


def test_each_guide_with_commands_is_read() -> None:
    """A page is left out of the run only if it shows none."""
    pages = {str(file.relative_to(guide_page.GUIDES)) for file in guide_page.GUIDES.rglob("*.md")}
    assert {page for page in pages if items_of(page)} == set(PAGES)


def test_one_page_only() -> None:
    item = Item("a.md", "", "command", "nodetool repair", True)
    assert matches("nodetool repair", item)
    assert matches("a.md: nodetool *", item)
    assert not matches("b.md: nodetool *", item)
    assert not matches("nodetool", item)
