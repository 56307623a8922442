"""The two walks in docs/internals/code.md name functions that exist, at most 15 each."""

from __future__ import annotations

import importlib
import re

from dev.local_stack.process.paths import project_root

STEP = re.compile(r"^(\d+)\. `([\w.]+):([\w.]+)`", re.MULTILINE)
LONGEST = 15


def test_each_step_is_a_function_that_exists() -> None:
    page = (project_root() / "docs" / "internals" / "code.md").read_text()
    steps = STEP.findall(page)
    numbers = [int(number) for number, _, _ in steps]
    assert numbers.count(1) == 2
    assert max(numbers) <= LONGEST
    for _, module, name in steps:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), (module, name)
