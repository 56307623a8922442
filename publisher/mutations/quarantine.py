"""Stores mutations that could not be decoded until they can be: one file each in the state directory.

<state_directory>/quarantine/<segment>-<position>.json      0600; the bytes hold row values
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code
from publisher import state_files
from publisher.mutations.messages import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from publisher.settings import PublisherSettings

_SUFFIX = ".json"


class SentGap(NamedTuple):
    """A gap message that was sent."""

    # The id of its table.
    table_id: bytes
    # The serialized partition key; empty for all Cassandra partitions.
    partition_key: bytes


class QuarantinedMutation(NamedTuple):
    """A mutation that could not be decoded."""

    # Its place in the log.
    origin: Origin
    # Its bytes.
    mutation: bytes
    # Why it could not be decoded.
    reason: str
    # When it was quarantined, in ISO 8601.
    quarantined_at: str
    # The gap messages that were sent for it.
    gaps: Sequence[SentGap]


class Quarantine:
    """The files of one node's publisher. A mutation that is read again after a crash overwrites its own file."""

    def __init__(self, folder: Path, max_mutations: int, max_bytes: int) -> None:
        self._folder = folder
        self._max_mutations = max_mutations
        self._max_bytes = max_bytes
        state_files.make_folder(self._folder)

    def __len__(self) -> int:
        """The number of mutations now; a command may have removed some."""
        return len(self._files())

    def store(self, origin: Origin, mutation: bytes, reason: str, gaps: Sequence[SentGap]) -> None:
        """Store the mutation durably. CdcError QUARANTINE_FULL above a limit."""
        file = self._file(origin)
        files = self._files()
        size = sum(other.stat().st_size for other in files if other != file)
        if file not in files and (len(files) >= self._max_mutations or size + len(mutation) > self._max_bytes):
            raise CdcError(
                Code.QUARANTINE_FULL,
                f"The mutation before position {origin.position} of {origin.file} cannot be decoded ({reason}), and the"
                f" quarantine is full: {len(files)} mutations, {size >> 10} KiB in {self._folder}.",
                "The publisher waits before this mutation; nothing is lost. Find the cause of all of them"
                " (cassandra-publisher quarantine ls), then replay or discard them, or raise the limit.",
            )
        state_files.write(
            file,
            {
                "host_id": origin.host_id.hex(),
                "segment": origin.segment,
                "file": origin.file,
                "messaging_version": origin.messaging_version,
                "position": origin.position,
                "reason": reason,
                "quarantined_at": datetime.now(UTC).isoformat(timespec="seconds"),
                "gaps": [[gap.table_id.hex(), gap.partition_key.hex()] for gap in gaps],
                "mutation": b64encode(mutation).decode(),
            },
        )

    def read_all(self) -> list[QuarantinedMutation]:
        """Return all quarantined mutations in log order. CdcError POSITION_FILE for a damaged file."""
        return [_read_file(file) for file in self._files()]

    def remove(self, entry: QuarantinedMutation) -> None:
        self._file(entry.origin).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(file for file in self._folder.iterdir() if file.suffix == _SUFFIX)

    def _file(self, origin: Origin) -> Path:
        return self._folder / f"{origin.segment:020d}-{origin.position:010d}{_SUFFIX}"


def open_quarantine(settings: PublisherSettings) -> Quarantine:
    """Open the quarantine. CdcError POSITION_FILE if the state directory cannot be used."""
    return Quarantine(
        settings.state_directory / "quarantine",
        settings.quarantine_max_mutations,
        settings.quarantine_max_mib << 20,
    )


def _read_file(file: Path) -> QuarantinedMutation:
    stored = state_files.read(file) or {}
    try:
        return QuarantinedMutation(
            Origin(
                bytes.fromhex(stored["host_id"]),
                stored["segment"],
                stored["file"],
                stored["messaging_version"],
                stored["position"],
            ),
            b64decode(stored["mutation"], validate=True),
            stored["reason"],
            stored["quarantined_at"],
            [SentGap(bytes.fromhex(table_id), bytes.fromhex(key)) for table_id, key in stored["gaps"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise CdcError(
            Code.POSITION_FILE,
            f"The quarantined mutation {file} is damaged.",
            "Restore the file, or move it away: its changes then stay missing until the rows are repaired.",
        ) from error
