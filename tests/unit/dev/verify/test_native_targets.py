"""The targets of `make verify WHAT=native` in a few cases each, without sanitizers; and the defects that it seeds."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("cdc_native.fold.fold", reason="the native core is not compiled: test_compiled says so")

from dev.local_stack.process.paths import project_root
from dev.verify.native.build import BUFFERS, DEFECTS
from dev.verify.native.targets import TARGETS
from materializer.rows.native_plan import IS_NATIVE
from tests.support.materializer.both_folds import Counts

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not IS_NATIVE, reason="the native core is turned off")


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_cases(name: str, tmp_path: Path) -> None:
    run, counts = TARGETS[name](tmp_path), Counts()
    for number in range(10):
        run(random.Random(f"test {number}"), counts)
    assert counts.records >= 10


@pytest.mark.parametrize("name", DEFECTS)
def test_the_check_that_a_defect_leaves_out_is_there(name: str) -> None:
    buffers = (project_root() / "cdc_native" / BUFFERS).read_text()
    assert buffers.count(DEFECTS[name].right) == 1
