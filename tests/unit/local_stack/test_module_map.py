"""docs/architecture.md says what is in the code."""

from __future__ import annotations

from local_stack.process.paths import project_root
from tools.module_map import module_map, with_module_map


def test_the_module_map_is_up_to_date() -> None:
    """If not: python -m tools.module_map."""
    page = (project_root() / "docs" / "architecture.md").read_text()
    assert page == with_module_map(page)


def test_every_module_says_what_it_is() -> None:
    assert "` |  |" not in module_map()
