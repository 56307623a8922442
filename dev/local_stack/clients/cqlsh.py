"""`make cqlsh`: Cassandra's own shell, from PyPI, on the running stack; arguments are handed on to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from cdc_common.program.cli import reported_errors
from dev.local_stack.servers.addresses import read_servers


def main() -> None:
    with reported_errors():
        servers = read_servers()
        program = Path(sys.executable).with_name("cqlsh")
        arguments = [str(program), *sys.argv[1:], servers.cassandra_hosts[0], str(servers.cassandra_port)]
        os.execv(program, arguments)  # noqa: S606 - it takes this process's place, terminal and all


if __name__ == "__main__":
    main()
