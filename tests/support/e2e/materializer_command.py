"""Commands of the materializer, run beside a stack's job."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from dev.local_stack.servers.programs import environment_of

if TYPE_CHECKING:
    from dev.local_stack.servers.stack import Stack


def materializer(stack: Stack, *arguments: str) -> str:
    """Run a command of it, and return the output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
    done = subprocess.run(
        [sys.executable, "-m", "materializer", *arguments],
        env={**kept, **environment_of(stack.materializer.settings)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
