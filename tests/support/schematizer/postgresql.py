"""A PostgreSQL server of the tests' own: Debian's programs, a new folder, a Unix socket, as a child process."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUIRED = "CDC_REQUIRE_POSTGRESQL"
"""Set where a missing PostgreSQL is an error instead of a reason to skip: in continuous integration."""
_USER = "nobody"
"""PostgreSQL refuses to run as root."""
_START_SECONDS = 120
_PORT = 5432
_OTHER_USER: Any = {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []} if os.geteuid() == 0 else {}


def programs() -> Path | None:
    """The folder of the newest version's programs; None if PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    on_path = shutil.which("postgres")
    return Path(on_path).parent if on_path else None


@dataclass
class PostgreSQL:
    """Start it, then make databases in it. port: of 127.0.0.1, for Java's drivers, which have no Unix sockets; 0 for
    none.
    """

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = None
    databases: int = 0

    def start(self) -> PostgreSQL:
        binaries = programs()
        assert binaries is not None
        data = self.folder / "data"
        self._run(binaries / "initdb", "--pgdata", data, "--username", "test", "--auth", "trust", "--no-sync")
        # Durability is not what these tests are about; kill -9 of PostgreSQL is PostgreSQL's own affair.
        settings = (
            f"listen_addresses={'127.0.0.1' if self.port else ''}",
            f"port={self.port or _PORT}",
            f"unix_socket_directories={self.folder}",
            "fsync=off",
        )
        options = [word for setting in settings for word in ("-c", setting)]
        command = [str(binaries / "postgres"), "-D", str(data), *options]
        with (self.folder / "log").open("wb") as log:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, **_OTHER_USER
            )
        self.process = process
        deadline = time.monotonic() + _START_SECONDS
        while subprocess.run(self._psql("SELECT 1"), capture_output=True, check=False).returncode != 0:
            assert process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.1)
        return self

    def new_database(self) -> str:
        """The SQLAlchemy URL of an empty database."""
        self.databases += 1
        name = f"test{self.databases}"
        subprocess.run(self._psql(f"CREATE DATABASE {name}"), check=True, capture_output=True)
        return f"postgresql+psycopg://test@/{name}?host={self.folder}&port={self.port or _PORT}"

    def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)  # a fast shutdown
        self.process.wait(timeout=60)
        shutil.rmtree(self.folder)

    def _psql(self, statement: str) -> list[str]:
        address = ["-h", str(self.folder), "-p", str(self.port or _PORT), "-U", "test", "-d", "postgres"]
        return ["psql", *address, "-qAtc", statement]

    def _run(self, *command: object) -> None:
        plain = [str(part) for part in command]
        subprocess.run(plain, check=True, capture_output=True, cwd=self.folder, **_OTHER_USER)


def new_folder() -> Path:
    """Short, as a socket's path has at most 107 bytes, and of the user that PostgreSQL runs as."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
    if os.geteuid() == 0:
        shutil.chown(folder, _USER, pwd.getpwnam(_USER).pw_gid)
    return folder
