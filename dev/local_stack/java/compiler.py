"""Compiles small Java classes by Eclipse's compiler, which is a plain jar: a JRE has none of its own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import ECJ, class_path, install
from dev.local_stack.java.runtime import find_java

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

COMPILER_JAVA = 17  # runs it


def compile_java(
    sources: Sequence[Path],
    classes: Path,
    *,
    level: int = 8,
    libraries: Sequence[Path] = (),
    report: Callable[[str], None] = print,
) -> None:
    """Fill the folder `classes` with the sources' classes for Java `level`. Raises CdcError(STACK_MISSING)."""
    install(ECJ, report)
    command = [str(find_java(COMPILER_JAVA, report).executable), "-cp", class_path(ECJ)]
    command += ["org.eclipse.jdt.internal.compiler.batch.Main", f"-{level}", "-nowarn", "-d", str(classes)]
    if libraries:
        command += ["-classpath", os.pathsep.join(map(str, libraries))]
    done = subprocess.run([*command, *map(str, sources)], capture_output=True, text=True, check=False)
    if done.returncode:
        names = ", ".join(source.name for source in sources)
        raise CdcError(Code.STACK_MISSING, f"{names} does not compile: {done.stderr[:2000]}", "Install a JDK 17.")
