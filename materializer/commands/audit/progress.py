"""Store an audit's progress in the checkpoint location. A run that was stopped continues from there."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from cassandra_storage.formats.primitives.token_ranges import Span
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.errors import MessageError, check_version
from materializer.commands.audit.compare import Seen
from materializer.commands.audit.first_look import Candidate
from materializer.commands.audit.select import Unread

if TYPE_CHECKING:
    from stream_runtime.state.object_store import ObjectStore

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)  # there is no version before 1


@dataclass
class Progress:
    """The progress of an audit, as it is stored between its slices."""

    # The id of the audited table, in hex.
    table_id: str
    # The consistency of SELECT.
    consistency: str
    # The number of slices.
    slices: int
    # When the audit was started, in µs.
    begun_us: int
    # The numbers of the slices that are compared.
    done: list[int] = field(default_factory=list)
    # The number of rows read by SELECT.
    rows: int = 0
    # The number of units compared.
    units: int = 0
    # The number of differences found.
    differences: int = 0
    # The number of units that differed at the first look, and not at the second.
    settled: int = 0
    # Units that need a second look.
    waiting: list[Candidate] = field(default_factory=list)
    # Tokens that could not be read.
    unread: list[Unread] = field(default_factory=list)
    # The keys of the Cassandra partitions with differences.
    differing: list[bytes] = field(default_factory=list)
    # How many of these were repaired.
    replaced: int = 0


class ProgressFile:
    """The progress of the audit of one raw topic's table."""

    def __init__(self, store: ObjectStore, group: str, topic: str) -> None:
        self._store = store
        self._path = f"{group}/{topic}.audit/progress.json"

    def read(self) -> Progress | None:
        """None if no audit was stopped. CdcError(STATE_FORMAT) for a file that this build does not read."""
        data = self._store.read(self._path)
        if data is None:
            return None
        try:
            content = json.loads(data)
            check_version(content.pop("format"), READABLE_VERSIONS, "audit progress")
            waiting = [_candidate(candidate) for candidate in content.pop("waiting")]
            unread = [Unread(Span(*span), reason, begun) for span, reason, begun in content.pop("unread")]
            differing = [bytes.fromhex(key) for key in content.pop("differing", [])]
            return Progress(**content, waiting=waiting, unread=unread, differing=differing)
        except (ValueError, KeyError, TypeError, AttributeError, MessageError) as error:
            raise CdcError(
                Code.STATE_FORMAT,
                f"The progress of an audit in {self._store.full_path(self._path)} cannot be read.",
                "Start the audit again with --restart.",
            ) from error

    def write(self, progress: Progress) -> None:
        content = {"format": FORMAT_VERSION, **asdict(progress)}
        self._store.write(self._path, json.dumps(content, default=bytes.hex).encode())

    def delete(self) -> None:
        self._store.delete([self._path])


def _candidate(content: list[Any]) -> Candidate:
    partition_key, clustering, seen_us, columns, looks = content
    values = (
        None if clustering is None else tuple(None if value is None else bytes.fromhex(value) for value in clustering)
    )
    return Candidate(
        bytes.fromhex(partition_key), values, seen_us, {name: Seen(*seen) for name, seen in columns.items()}, looks
    )
