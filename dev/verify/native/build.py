"""The native core compiled with AddressSanitizer and UndefinedBehaviorSanitizer, in a folder of its own."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import NamedTuple

from dev.local_stack.process.paths import project_root

INCLUDE = f"-I{sysconfig.get_path('include')}"
BUFFERS = Path("formats", "buffers.pxd")
STAMP = "built"  # of the folder; a module beside it has sanitizers
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
# Without -fwrapv, which the core is otherwise compiled with, the sanitizer also finds signed numbers that overflow.
FLAGS = ("-O1", "-g", "-fPIC", "-fno-omit-frame-pointer", "-fno-wrapv", "-fno-strict-aliasing", *SANITIZERS)
DIRECTIVES = ("wraparound=False", "cdivision=True", "initializedcheck=False")
RUNTIMES = ("libasan.so", "libubsan.so")


class Defect(NamedTuple):
    """A check that is left out of BUFFERS. It must be found."""

    # The text of the check.
    right: str
    # The text in its place.
    wrong: str


DEFECTS = {
    "take": Defect("if c.is_bad or count > <uint64_t>(c.end - c.at):", "if c.is_bad:"),
    "vint": Defect("    if c.end - c.at <= extra:", "    if c.end == c.at:"),
    "long": Defect("        if at >= c.end or shift > 63:", "        if shift > 63:"),
    "write": Defect("if reserve(w, count) and count:", "if reserve(w, 1) and count:"),
}


def build(defect: str | None = None) -> Path:
    """The folder that holds the compiled package; compiled only if the sources or the flags have changed."""
    sources = project_root() / "cdc_native"
    wanted = _digest(sources, defect)
    folder = project_root() / ".run" / "verify" / ("native" if defect is None else f"native-{defect}")
    target, stamp = folder / "cdc_native", folder / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources, target, ignore=shutil.ignore_patterns("*.so", "__pycache__", ".compiled.json"))
    if defect is not None:
        _seed(target / BUFFERS, DEFECTS[defect])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(_compile, sorted(target.rglob("*.pyx"))))
    stamp.write_text(wanted)
    return folder


def _seed(path: Path, defect: Defect) -> None:
    code = path.read_text()
    if code.count(defect.right) != 1:
        raise SystemExit(f"{path.name} does not have this line once: {defect.right.strip()}")
    path.write_text(code.replace(defect.right, defect.wrong))


def environment(folder: Path) -> dict[str, str]:
    """The variables with which a Python process runs the compiled core. Python itself is not compiled with sanitizers,
    so their libraries must be loaded first, and memory must come from malloc, which they replace.
    """
    return {
        **os.environ,
        "LD_PRELOAD": ":".join(_runtime(name) for name in RUNTIMES),
        "PYTHONPATH": os.pathsep.join((str(folder), str(project_root()))),
        "PYTHONSAFEPATH": "1",
        "PYTHONMALLOC": "malloc",
        "PYTHONHASHSEED": "0",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:exitcode=99",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _compile(source: Path) -> None:
    module = source.with_suffix(EXTENSION_SUFFIXES[0])
    code = source.with_suffix(".c")
    directives = [part for directive in DIRECTIVES for part in ("-X", directive)]
    package = next(folder for folder in source.parents if folder.name == "cdc_native")
    subprocess.run([sys.executable, "-m", "cython", "-3", *directives, str(source)], check=True, cwd=package.parent)
    subprocess.run([*_compiler(), *FLAGS, INCLUDE, "-shared", str(code), "-o", str(module)], check=True)


def _compiler() -> list[str]:
    return (os.environ.get("CC") or "gcc").split()


def _runtime(name: str) -> str:
    found = subprocess.run([*_compiler(), f"-print-file-name={name}"], check=True, capture_output=True, text=True)
    path = found.stdout.strip()
    if not Path(path).is_absolute():
        raise SystemExit(f"The compiler has no {name}. Debian/Ubuntu: apt-get install gcc; CC names another compiler.")
    return path


def _digest(sources: Path, defect: str | None) -> str:
    found = hashlib.sha256(repr((FLAGS, DIRECTIVES, DEFECTS.get(defect or ""), sys.version)).encode())
    for path in sorted((*sources.rglob("*.pyx"), *sources.rglob("*.pxd"))):
        found.update(path.read_bytes())
    return found.hexdigest()
