"""Runs the node's own nodetool for a snapshot: it links SSTables, names the owners of tokens, and counts what waits on
the node.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from cassandra_storage.formats.primitives.token_ranges import TokenRange
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_password_options

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT_SECONDS = 1800.0  # a snapshot flushes
ANSWER_SECONDS = 30.0  # of what only reports
_RANGE = re.compile(r"TokenRange\(start_token:(-?\d+), end_token:(-?\d+), endpoints:\[([^\]]*)\](.*)")
_DATACENTER = re.compile(r"EndpointDetails\(host:([^,]+), datacenter:([^,)]+)")
_PENDING_COMPACTIONS = re.compile(r"^pending tasks:? +(\d+)", re.MULTILINE)  # a table from 4.1 on
_POOL = re.compile(r"^(\S+) +\d+ +(\d+) +\d+ ", re.MULTILINE)  # its name; active, pending and completed tasks


class Nodetool:
    """CdcError NODETOOL_FAILED for a command that fails."""

    def __init__(self, command: Sequence[str]) -> None:
        self._command = list(command)

    def take_snapshot(self, keyspace: str, table: str, tag: str) -> None:
        """Flush the table, and link its SSTables (`nodetool snapshot`)."""
        self._run("snapshot", "-t", tag, "-cf", table, "--", keyspace)

    def clear_snapshot(self, keyspace: str, tag: str) -> None:
        """Remove the links; nothing happens if there are none."""
        self._run("clearsnapshot", "-t", tag, "--", keyspace)

    def owned_ranges(self, keyspace: str, address: str, *, only_primary: bool = False) -> list[TokenRange]:
        """The token ranges with the node of this broadcast address as a replica (`nodetool describering`), or as the
        first replica of its datacenter (StorageService.getPrimaryRangeForEndpointWithinDC).
        """
        output = self._run("describering", "--", keyspace)
        return owned_ranges(output, keyspace, address, only_primary=only_primary)

    def replica_counts(self, keyspace: str, address: str) -> list[tuple[TokenRange, int]]:
        """The token ranges of `owned_ranges`, each with the number of its replicas in the node's datacenter."""
        return replica_counts(self._run("describering", "--", keyspace), keyspace, address)

    def waiting_compactions(self) -> int:
        """The node's estimate (`nodetool compactionstats`)."""
        output = self._run("compactionstats", timeout=ANSWER_SECONDS)
        found = _PENDING_COMPACTIONS.search(output)
        if found is None:
            raise _failed([*self._command, "compactionstats"], "its answer has no pending tasks")
        return int(found[1])

    def waiting_tasks(self) -> dict[str, int]:
        """Return the number of waiting tasks by thread pool (`nodetool tpstats`)."""
        output = self._run("tpstats", timeout=ANSWER_SECONDS)
        return {name: int(pending) for name, pending in _POOL.findall(output)}

    def _run(self, *arguments: str, timeout: float = TIMEOUT_SECONDS) -> str:
        command = [*self._command, *arguments]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=timeout, check=False
            )
        except OSError as error:
            raise _failed(command, str(error)) from error
        except subprocess.TimeoutExpired as error:
            raise _failed(command, f"it is still running after {timeout:.0f} s") from error
        if done.returncode:
            raise _failed(command, (done.stderr or done.stdout).strip()[:500])
        return done.stdout


def owned_ranges(output: str, keyspace: str, address: str, *, only_primary: bool = False) -> list[TokenRange]:
    """See Nodetool.owned_ranges; `output`: of describering. CdcError if the node is no replica."""
    found = _replicas(output, keyspace, address)
    return [token_range for token_range, near in found if not only_primary or near[0] == address]


def replica_counts(output: str, keyspace: str, address: str) -> list[tuple[TokenRange, int]]:
    """See Nodetool.replica_counts; as owned_ranges."""
    return [(token_range, len(near)) for token_range, near in _replicas(output, keyspace, address)]


def _replicas(output: str, keyspace: str, address: str) -> list[tuple[TokenRange, list[str]]]:
    """The ranges of a node, each with its replicas in the node's datacenter."""
    found = []
    for start, end, listed, rest in _RANGE.findall(output):
        endpoints = [part.strip() for part in listed.split(",")]
        if address not in endpoints:
            continue
        datacenters = dict(_DATACENTER.findall(rest))
        near = [endpoint for endpoint in endpoints if datacenters.get(endpoint) == datacenters.get(address)]
        found.append((TokenRange(int(start), int(end)), near))
    if not found:
        raise CdcError(
            Code.NODETOOL_FAILED,
            f"nodetool describering {keyspace} names no token range of this node, {address}.",
            "The keyspace has no replica here: take the snapshot on the nodes that have one.",
        )
    return found


def _failed(command: Sequence[str], reason: str) -> CdcError:
    return CdcError(
        Code.NODETOOL_FAILED,
        f"{' '.join(mask_password_options(command))} failed: {reason}.",
        "Set publisher.nodetool to the node's own nodetool with the options it needs to connect (-h, -p, -u, -pwf).",
    )
