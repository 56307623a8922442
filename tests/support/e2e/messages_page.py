"""Writes the page change-event-examples.md from tests/e2e/scripts: `python -m tests.support.e2e.messages_page`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.e2e.script import ARROW, read_scripts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.e2e.script import Script, Step

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "change-event-examples.md"
INTRODUCTION = """\
# What comes out of a statement

For each kind of statement the CQL and the change messages that it gives. This page is made from `tests/e2e/scripts`,
which the tests run on a real Cassandra, Kafka and Spark: what stands here is what came out.

Messages are shown as `make follow JSON=1` prints them, without `source` (but for `source.cause` where it is `expiry`):
the key, the row before and after, and `op`, which is `c` for a row that was not there, `u` for one that was, `d` for
one that is gone. Bytes are in hexadecimal. [raw-topics.md](raw-topics.md) describes every field and type.

What one statement gives for several rows comes in no promised order but that of each partition's writes.
"""


def page() -> str:
    return "\n".join([INTRODUCTION, *(line for script in read_scripts() for line in _section(script))]) + "\n"


def _section(script: Script) -> Iterator[str]:
    """The prose of a step goes before it; statements without messages go into the block of the next one."""
    statements: list[str] = []
    for step in script.steps:
        if step.prose:
            yield from _sql(statements)
            statements = []
            for line in step.prose:
                yield from (["#" + line, ""] if line.startswith("#") else [line])
            yield ""
        statements += [step.statement] if step.statement else []
        if step.text:
            yield from _sql(statements)
            statements = []
            yield from _messages(step)
    yield from _sql(statements)


def _sql(statements: list[str]) -> list[str]:
    return ["```sql", *statements, "```", ""] if statements else []


def _messages(step: Step) -> list[str]:
    if step.is_awaited_in_vain:
        return ["No message.", ""]
    lines = [line.removeprefix(ARROW + " ") if line.startswith(ARROW) else line[3:] for line in step.text]
    return ["```json", *lines, "```", ""]


if __name__ == "__main__":
    PAGE.write_text(page())
