"""The process that warm_start forks from: `python -m tests.support.warm_process NAME DESCRIPTOR`.

Each request on the socket is its length in 4 bytes, which come with two descriptors (standard output and error), and
JSON: arguments, env, cwd. The answers are lines: `started PID 0`, `ended PID STATUS`. It ends, with all its children,
when the socket is closed: when the tests' process has ended.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
from typing import NoReturn

MODULES = {
    "schematizer": ("schematizer.cli", "schematizer.server"),
    "publisher": ("publisher.cli", "publisher.app", "cassandra.cluster", "confluent_kafka"),
    "filler": ("filler.cli", "filler.app", "cassandra.cluster"),
}


def main(name: str, descriptor: int) -> None:
    sys.argv = [name]
    for module in MODULES[name]:
        importlib.import_module(module)
    connection = socket.socket(fileno=descriptor)
    running: dict[int, int] = {}  # pid by its descriptor
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is connection:
                    size, files, *_ = socket.recv_fds(connection, 4, 2)
                    if not size:
                        end_all(running)
                        return
                    request = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        run(name, request, connection, files)
                    for file in files:
                        os.close(file)
                    handle = os.pidfd_open(pid)
                    running[handle] = pid
                    selector.register(handle, selectors.EVENT_READ)
                    connection.sendall(b"started %d 0\n" % pid)
                else:
                    pid, status = os.waitpid(running.pop(key.fd), 0)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    connection.sendall(b"ended %d %d\n" % (pid, os.waitstatus_to_exitcode(status)))


def run(name: str, request: dict[str, object], connection: socket.socket, files: list[int]) -> NoReturn:
    """Run the module as `python -m NAME` does, in the fork."""
    arguments, environment, folder = request["arguments"], request["env"], request["cwd"]
    assert isinstance(arguments, list)
    assert isinstance(environment, dict)
    connection.close()
    for target, file in enumerate(files, 1):
        os.dup2(file, target)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(str(folder))
    sys.argv = [name, *arguments]
    try:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001 - as the interpreter does with what nothing has caught
        sys.excepthook(*sys.exc_info())
        status = 1
    else:
        status = 0
    sys.exit(status)


def end_all(running: dict[int, int]) -> None:
    for pid in running.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
