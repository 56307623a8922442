"""Makes the lock of Python packages again: `python -m dev.tools.python_lock [--upgrade]`.

uv resolves what a checkout installs for every Python from 3.11 on and every system at once, and writes each file's
hash into dev/local_stack/install/requirements.txt. Without --upgrade, versions stay where pyproject.toml lets them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from dev.local_stack.install.commands import REQUIREMENTS
from dev.local_stack.process.paths import project_root
from dev.tools.menu import requirements

PYTHON = "3.11"  # the oldest
HEADER = "# Made by `python -m dev.tools.python_lock`; do not edit.\n"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tools = Path(folder, "tools")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(tools), "uv"], check=True)
        wanted = Path(folder, "zig.in")
        wanted.write_text("\n".join(name for name in requirements("distribution") if name.startswith("ziglang")))
        command = [str(tools / "bin" / "uv"), "pip", "compile", "--quiet", "--universal", "--generate-hashes"]
        command += ["--python-version", PYTHON, "--no-header", "--no-annotate", "--extra", "dev", *sys.argv[1:]]
        command += ["--output-file", str(REQUIREMENTS), "pyproject.toml", str(wanted)]
        environment = {**os.environ, "UV_CACHE_DIR": str(Path(folder, "cache"))}
        subprocess.run(command, check=True, cwd=project_root(), env=environment)
    REQUIREMENTS.write_text(HEADER + REQUIREMENTS.read_text().removeprefix(HEADER))
    return 0


if __name__ == "__main__":
    sys.exit(main())
