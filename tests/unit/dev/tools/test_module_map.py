"""Every package, room and module says what it is. docs/internals/code.md lists the packages."""

from __future__ import annotations

from dev.local_stack.process.paths import project_root
from dev.tools.reference.module_map import PACKAGES, module_map, modules, rooms, summary


def test_every_package_room_and_module_says_what_it_is() -> None:
    root = project_root()
    for name in PACKAGES:
        for folder in (root / name, *rooms(root / name)):
            silent = [str(path) for path in (folder, *modules(folder)) if not summary(path)]
            assert not silent


def test_each_room_is_named_beside_its_package() -> None:
    lines = module_map().splitlines()
    [materializer] = [line for line in lines if line.startswith("| `materializer` |")]
    assert materializer.endswith("| commands, fold, job, output, planning, processing, rows, worker |")
    assert [line for line in lines if line.startswith("| `filler` |") and line.endswith("| none |")]
