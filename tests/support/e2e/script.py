"""Scripts of CQL, each statement with the messages that must come out of it: the files of tests/e2e/scripts.

Lines that begin with `--` are prose, in Markdown; a statement ends with `;` (a batch with `APPLY BATCH;`); a line that
begins with `->` is a message that must come, as JSON that may go on over indented lines, or `nothing`. Messages after
prose alone come by themselves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "e2e" / "scripts"
ARROW = "->"
NOTHING = "nothing"


@dataclass(slots=True)
class Step:
    """`statement` is empty where messages come by themselves; `text` is what the file says of them, line by line."""

    prose: list[str] = field(default_factory=list)
    statement: str = ""
    text: list[str] = field(default_factory=list)

    @property
    def is_awaited_in_vain(self) -> bool:
        """Nothing must come, and that is said."""
        return self.text == [f"{ARROW} {NOTHING}"]

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Return the changes that must come, in any order."""
        texts = " ".join(self.text).split(ARROW)[1:]
        return [] if self.is_awaited_in_vain else [json.loads(text) for text in texts]


@dataclass(frozen=True, slots=True)
class Script:
    name: str
    steps: tuple[Step, ...]

    @property
    def keyspace(self) -> str:
        return "script_" + self.name.partition("-")[2].replace("-", "_")


def read_scripts() -> list[Script]:
    return [Script(path.stem, tuple(parse(path.read_text()))) for path in sorted(FOLDER.glob("*.cql"))]


def parse(text: str) -> list[Step]:
    """The steps of a file. ValueError for a line that is none of the three kinds."""
    steps = [Step()]
    is_open = False  # a statement goes on
    for line in text.splitlines():
        step = steps[-1]
        if is_open:
            step.statement += "\n" + line
        elif line.startswith((ARROW, " ")) and (step.statement or step.prose):
            step.text.append(line)
            continue
        else:
            if step.statement or step.text:
                steps.append(step := Step())
            if line.startswith("--"):
                step.prose.append(line[2:].strip())
                continue
            if not line or line.startswith((ARROW, " ")):
                raise ValueError(f"neither prose nor a statement nor a message: {line!r}")
            step.statement = line
        is_open = not ends(step.statement)
    if is_open:
        raise ValueError(f"no end: {steps[-1].statement}")
    return steps


def ends(statement: str) -> bool:
    return statement.endswith("APPLY BATCH;" if statement.startswith("BEGIN") else ";")
