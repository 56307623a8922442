"""Compiles the native core (cdc_native/**/*.pyx) into the checkout, once for each state of its sources.

A stamp in cdc_native has the hash of what each module was compiled from: the next make command compiles an edited .pyx
and nothing else, and where nothing was edited it takes milliseconds. setup.py chooses the compiler.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sysconfig
import time
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dev.local_stack.install.commands import ROOT, install_locked, output_of, print_progress, run_command

if TYPE_CHECKING:
    from collections.abc import Iterable

PACKAGE = ROOT / "cdc_native"
STAMP = PACKAGE / ".compiled.json"
C_FILES = ROOT / "build" / "cython"
COMPILERS = ("cc", "gcc", "clang")


def build_core(python: Path) -> None:
    """Compile what has changed since the last time, with this environment's Cython.

    Where that fails it says so, and tries again once a compiler or Python's headers are installed.
    """
    wanted, stamp = module_hashes(), _read_stamp()
    stale = stale_modules(wanted, stamp)
    if not stale:
        if not stamp["is_compiled"]:
            print_progress(
                f"The native core could not be compiled (CDC-007). To try again: rm {STAMP.relative_to(ROOT)}"
            )
        return
    started = time.monotonic()
    _remove_without_source(wanted)
    print_progress(f"Compiling the native core: {', '.join(stale)}")
    _remove(stale)
    if output_of([str(python), "-c", "import setup; print(setup.needs_zig())"]).strip() == "True":
        print_progress("No C compiler works here: installing one from PyPI (ziglang, 100 MB)")
        install_locked(python, lambda name: name == "ziglang")
    run_command([str(python), "setup.py", "--quiet", "build_ext", "--inplace"])
    is_compiled = all(_compiled(name).exists() for name in wanted)
    STAMP.write_text(json.dumps({"modules": wanted, "is_compiled": is_compiled, "build_tools": _build_tools()}))
    if is_compiled:
        print_progress(f"The native core is compiled ({time.monotonic() - started:.0f} s).")


def stale_modules(wanted: dict[str, str], stamp: dict[str, Any]) -> list[str]:
    """The modules that are not compiled from these sources; none where that was tried with the same tools in vain."""
    if not stamp["is_compiled"] and stamp["modules"] == wanted and stamp["build_tools"] == _build_tools():
        return []
    return [name for name in wanted if stamp["modules"].get(name) != wanted[name] or not _compiled(name).exists()]


def module_hashes() -> dict[str, str]:
    """Return, by module (`room/name`), the hash of its source, of what it may include, and of how it is compiled."""
    shared = b"".join(path.read_bytes() for path in (*sorted(PACKAGE.rglob("*.pxd")), ROOT / "setup.py"))
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix(): hashlib.sha256(path.read_bytes() + shared).hexdigest()
        for path in sorted(PACKAGE.rglob("*.pyx"))
    }


def _read_stamp() -> dict[str, Any]:
    try:
        stamp: dict[str, Any] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {"modules": {}, "is_compiled": False, "build_tools": []}
    return stamp


def _build_tools() -> list[str | bool | None]:
    """Return what decides whether it compiles: Python's headers, and compilers."""
    return [Path(sysconfig.get_path("include"), "Python.h").exists(), *(shutil.which(name) for name in COMPILERS)]


def _compiled(name: str) -> Path:
    """Return the file that a module is compiled to for this Python."""
    return PACKAGE / f"{name}{EXTENSION_SUFFIXES[0]}"


def _remove_without_source(wanted: Iterable[str]) -> None:
    """Remove what modules were compiled to that are no longer there, or are in another room."""
    kept = {_compiled(name) for name in wanted}
    for path in PACKAGE.rglob(f"*{EXTENSION_SUFFIXES[0]}"):
        if path not in kept:
            path.unlink()


def _remove(names: Iterable[str]) -> None:
    """Remove what they were compiled to: setup.py compares dates, which an older version of a source may fool."""
    for name in names:
        _compiled(name).unlink(missing_ok=True)
        (C_FILES / "cdc_native" / f"{name}.c").unlink(missing_ok=True)
