"""Builds the native core (cdc_native/**/*.pyx) with the system's C compiler or, where none works, with PyPI's ziglang.

The core is optional: where it cannot be compiled, the installation says why and succeeds with the Python code alone.
CDC_BUILD_CORE=0 leaves it out. CDC_BUILD_TARGET, a target of zig's (aarch64-linux-gnu.2.17), makes a wheel for that
system; then a failure is an error.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

IS_WANTED = os.environ.get("CDC_BUILD_CORE") != "0"
SOURCES = sorted(path.as_posix() for path in Path("cdc_native").rglob("*.pyx")) if IS_WANTED else []
DIRECTIVES = {
    "language_level": 3,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
}
FLAGS = ["-O3", "-g0"]
ZIG_MACHINES = ("x86_64", "aarch64")
# What Python's own build flags have for a system compiler; zig would otherwise take this processor's instructions.
ZIG_FLAGS = ["-DNDEBUG", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-fno-sanitize=undefined", "-mcpu=baseline"]
with Path("pyproject.toml").open("rb") as file:
    TOOLS = tomllib.load(file)["project"]["optional-dependencies"]["distribution"]
[ZIG] = (tool for tool in TOOLS if tool.startswith("ziglang"))
TARGET = os.environ.get("CDC_BUILD_TARGET", "")


def needs_zig() -> bool:
    """Whether zig is to compile: for another system, or as there is no C compiler that works and zig is known to."""
    is_known = platform.system() == "Linux" and platform.machine() in ZIG_MACHINES
    return bool(TARGET) or (is_known and not system_compiler_works())


def system_compiler_works() -> bool:
    """Whether the compiler that setuptools would take compiles a program of the C library."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <stdlib.h>\n#include <string.h>\nint probe(void) { return 0; }\n")
        try:
            done = subprocess.run([*command, "-c", str(source)], cwd=folder, capture_output=True, check=False)
        except OSError:
            return False
    return done.returncode == 0


class BuildCore(build_ext):
    """build_ext that cythonizes first, may compile by zig, and leaves the core out where that fails."""

    def finalize_options(self) -> None:
        modules = [Extension(path[:-4].replace("/", "."), [path], extra_compile_args=FLAGS) for path in SOURCES]
        self.distribution.ext_modules = cythonize(
            modules, nthreads=os.cpu_count() or 1, quiet=True, compiler_directives=DIRECTIVES, build_dir="build/cython"
        )
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count()

    def run(self) -> None:
        try:
            super().run()
        except Exception as error:
            if TARGET:
                raise
            for extension in self.extensions:  # a part of the core is none
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []
            sys.stderr.write(without_core(error))

    def build_extensions(self) -> None:
        if needs_zig():
            zig = [sys.executable, "-m", "ziglang", "cc", *(["-target", TARGET] if TARGET else [])]
            self.compiler.set_executables(compiler_so=[*zig, *ZIG_FLAGS], linker_so=[*zig, "-shared", "-s"])
            cache = str(Path("build/zig").resolve())
            os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", cache)
            os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", cache)
        super().build_extensions()

    def get_ext_filename(self, fullname: str) -> str:
        name = super().get_ext_filename(fullname)
        return name.replace(f"-{platform.machine()}-", f"-{target_machine()}-") if TARGET else name


def without_core(error: Exception) -> str:
    """Return the words for the user where the core cannot be compiled."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    fix = (
        f"Python's headers are missing ({header}). Debian/Ubuntu: apt-get install python{version}-dev"
        if not header.exists()
        else "Install a C compiler. Debian/Ubuntu: apt-get install gcc libc6-dev"
        if not system_compiler_works()
        else "The compiler's message is above."
    )
    return (
        f"The native core was not compiled: {error}\n{fix}\n"
        "The programs run on the Python code alone, which takes several times the CPU (CDC-007).\n"
    )


def target_machine() -> str:
    return TARGET.partition("-")[0]


def wheel_tag() -> str:
    """TARGET's platform tag: aarch64-linux-gnu.2.17 is manylinux_2_17_aarch64."""
    system, _, version = TARGET.partition("-")[2].partition(".")
    if system != "linux-gnu" or not version:
        raise SystemExit(f"CDC_BUILD_TARGET={TARGET}: MACHINE-linux-gnu.GLIBC is wanted, such as x86_64-linux-gnu.2.17")
    return f"manylinux_{version.replace('.', '_')}_{target_machine()}"


if __name__ == "__main__":
    setup(
        cmdclass={"build_ext": BuildCore},
        ext_modules=[Extension(path[:-4].replace("/", "."), [path]) for path in SOURCES],
        options={"bdist_wheel": {"plat_name": wheel_tag()}} if TARGET else {},
        # pip asks for these before it builds, and installs them for the time of the build.
        setup_requires=[ZIG] if SOURCES and needs_zig() else [],
    )
