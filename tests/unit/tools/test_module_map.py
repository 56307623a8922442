"""docs/how-it-works.md says what is in the code."""

from __future__ import annotations

from local_stack.process.paths import project_root
from tools.module_map import CHECKOUT_PACKAGES, PACKAGES, module_map, modules, rooms, summary, with_module_map


def test_the_map_of_packages_and_rooms_is_up_to_date() -> None:
    """If not: python -m tools.module_map."""
    page = (project_root() / "docs" / "how-it-works.md").read_text()
    assert page == with_module_map(page)


def test_every_module_says_what_it_is() -> None:
    assert "|  |" not in module_map()
    root = project_root()
    for name in (*PACKAGES, *CHECKOUT_PACKAGES):
        for folder in (root / name, *rooms(root / name)):
            silent = [str(module) for module in modules(folder) if not summary(module)]
            assert not silent
