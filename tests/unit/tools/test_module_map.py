"""Every package, room and module says what it is: docs/internals/code.md lists them."""

from __future__ import annotations

from local_stack.process.paths import project_root
from tools.reference.module_map import CHECKOUT_PACKAGES, PACKAGES, module_map, modules, rooms, summary


def test_every_module_says_what_it_is() -> None:
    assert "|  |" not in module_map()
    root = project_root()
    for name in (*PACKAGES, *CHECKOUT_PACKAGES):
        for folder in (root / name, *rooms(root / name)):
            silent = [str(module) for module in modules(folder) if not summary(module)]
            assert not silent
