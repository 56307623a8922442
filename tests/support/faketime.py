"""A Kafka broker whose clock is shifted, by libfaketime."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from dev.local_stack.process.paths import local_folder
from dev.local_stack.process.processes import ChildProcess
from dev.local_stack.servers.kafka import KafkaBroker

if TYPE_CHECKING:
    from dev.local_stack.process.processes import ServerProcess

_FOLDER = local_folder() / "faketime"
_LIBRARY = "libfaketime.so.1"


class ShiftedBroker(KafkaBroker):
    """`shift`: from the machine's clock, as libfaketime has it (`+3d`, `-8d`); empty for none. A start takes it up."""

    shift = ""

    def launch(self) -> ServerProcess:
        if not self.shift:
            return super().launch()
        env = {
            **os.environ,
            "LD_PRELOAD": str(find_libfaketime()),
            "FAKETIME": self.shift,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",  # a JVM waits by the monotonic clock,
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",  # and with the fix its waits end at once (measured)
            "FAKETIME_CACHE_DURATION": "100000",
        }
        return ChildProcess("kafka", self.command(), log=self.log, cwd=self.folder.path, env=env)


def find_libfaketime() -> Path:
    """The system's library or, on Debian and Ubuntu, one that apt-get fetches into .local without root's rights."""
    for folder in (Path("/usr/lib"), _FOLDER):
        found = next(folder.glob(f"**/{_LIBRARY}"), None)
        if found is not None:
            return found
    _FOLDER.mkdir(parents=True, exist_ok=True)
    if _run("apt-get", "download", "libfaketime").returncode:
        _run("apt-get", "update")
        _run("apt-get", "download", "libfaketime").check_returncode()
    [package] = _FOLDER.glob("*.deb")
    _run("dpkg-deb", "--extract", str(package), str(_FOLDER)).check_returncode()
    return next(_FOLDER.glob(f"**/{_LIBRARY}"))


def _run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, cwd=_FOLDER, check=False, capture_output=True)
