"""Mutations that could not be decoded, with their bytes, until they can be: a file each in the state directory.

<state_directory>/quarantine/<segment>-<position>.json      0600; the bytes hold row values
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError, Code
from publisher import state_files
from publisher.messages import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_program.settings import PublisherSettings

_SUFFIX = ".json"


class Gap(NamedTuple):
    """A gap message that was sent: the id of its table and its key, empty for every partition."""

    table_id: bytes
    key: bytes


class Quarantined(NamedTuple):
    """A mutation, where it stood, why it could not be decoded, when it was put aside, and who was told."""

    origin: Origin
    mutation: bytes
    reason: str
    at: str
    gaps: Sequence[Gap]


class Quarantine:
    """The files of one node's publisher. A mutation that is met again after a crash has its file already."""

    def __init__(self, folder: Path, max_mutations: int, max_bytes: int) -> None:
        self._folder = folder
        self._max_mutations = max_mutations
        self._max_bytes = max_bytes
        state_files.make_folder(self._folder)

    def __len__(self) -> int:
        """How many there are now; a command may have taken some away."""
        return len(self._files())

    def put(self, origin: Origin, mutation: bytes, reason: str, gaps: Sequence[Gap]) -> None:
        """Keep it durably. CdcError QUARANTINE_FULL where it would be one too many."""
        file = self._file(origin)
        files = self._files()
        size = sum(each.stat().st_size for each in files if each != file)
        if file not in files and (len(files) >= self._max_mutations or size + len(mutation) > self._max_bytes):
            raise CdcError(
                Code.QUARANTINE_FULL,
                f"The mutation before position {origin.position} of {origin.file} cannot be decoded ({reason}), and the"
                f" quarantine is full: {len(files)} mutations, {size >> 10} KiB in {self._folder}.",
                "The publisher has stopped before it; nothing is lost. See what is wrong with all of them"
                " (cassandra-publisher quarantine ls), replay or discard what is there, or raise the limit.",
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
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "gaps": [[gap.table_id.hex(), gap.key.hex()] for gap in gaps],
                "mutation": b64encode(mutation).decode(),
            },
        )

    def entries(self) -> list[Quarantined]:
        """In the order of the log. CdcError POSITION_FILE for a damaged file."""
        return [_read(file) for file in self._files()]

    def remove(self, entry: Quarantined) -> None:
        self._file(entry.origin).unlink(missing_ok=True)

    def _files(self) -> list[Path]:
        return sorted(file for file in self._folder.iterdir() if file.suffix == _SUFFIX)

    def _file(self, origin: Origin) -> Path:
        return self._folder / f"{origin.segment:020d}-{origin.position:010d}{_SUFFIX}"


def open_quarantine(settings: PublisherSettings) -> Quarantine:
    """CdcError POSITION_FILE where the state directory cannot be used."""
    return Quarantine(
        settings.state_directory / "quarantine",
        settings.quarantine_max_mutations,
        settings.quarantine_max_mib << 20,
    )


def _read(file: Path) -> Quarantined:
    stored = state_files.read(file) or {}
    try:
        host_id = bytes.fromhex(stored["host_id"])
        origin = Origin(host_id, stored["segment"], stored["file"], stored["messaging_version"], stored["position"])
        gaps = [Gap(bytes.fromhex(table), bytes.fromhex(key)) for table, key in stored["gaps"]]
        return Quarantined(origin, b64decode(stored["mutation"], validate=True), stored["reason"], stored["at"], gaps)
    except (KeyError, TypeError, ValueError) as error:
        raise CdcError(
            Code.POSITION_FILE,
            f"The quarantined mutation {file} is damaged.",
            "Restore the file, or move it away: its changes are then missing until the rows are repaired.",
        ) from error
