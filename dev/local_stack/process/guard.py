"""Kills the sessions that a process has named as soon as this process is gone, however that ended.

Run by `processes.py` as a script of its own, with the standard library alone. Reads lines `+<session>` and
`-<session>` from standard input; at the end of the input (the kernel closes the pipe even after kill -9) it kills
every process of the sessions that are left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys


def main() -> None:
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    sessions: set[int] = set()
    for line in sys.stdin:
        session = int(line[1:])
        if line[0] == "+":
            sessions.add(session)
        else:
            sessions.discard(session)
    for session in sessions:
        kill_session(session)


def kill_session(session: int) -> None:
    """SIGKILL to every process of a session, until no new one (forked since) is found."""
    signalled: set[int] = set()
    while fresh := set(session_members(session)) - signalled:
        for pid in fresh:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        signalled |= fresh


def session_members(session: int) -> list[int]:
    """Pids of a session's processes."""
    return [pid for pid in _all_pids() if _session_of(pid) == session]


def _all_pids() -> list[int]:
    if os.path.isdir("/proc/self"):  # noqa: PTH112 - pathlib would double this script's start time
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 - as above
    listed = subprocess.run(["/bin/ps", "-A", "-o", "pid="], capture_output=True, text=True, check=True)
    return [int(word) for word in listed.stdout.split()]


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


if __name__ == "__main__":
    main()
