"""docs/reference/registry-api.md says what is in the code."""

from __future__ import annotations

import re

from dev.local_stack.process.paths import project_root
from dev.tools.reference.registry_api import with_tables
from schematizer.confluent.guard import RULES

PAGE = project_root() / "docs" / "reference" / "registry-api.md"


def test_the_tables_of_paths_are_up_to_date() -> None:
    """If not: make docs-reference."""
    page = PAGE.read_text()
    assert page == with_tables(page)


def test_each_request_has_an_answer_and_confluents_a_role() -> None:
    rows = re.findall(r"^\| `(\w+) (\S+)` \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) > 80
    confluent = {(method, path): cells.split(" | ") for method, path, cells in rows[: len(RULES)]}
    assert confluent.keys() == {(method, path.replace(":path", "")) for method, path in RULES}
    assert {cells[1] for cells in confluent.values()} == {"reader", "writer", "admin"}
    assert all(cells.rpartition(" | ")[2].endswith(".") for _, _, cells in rows)
