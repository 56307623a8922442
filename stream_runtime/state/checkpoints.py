"""The checkpoint store of one source partition: its changelogs and its snapshots in the checkpoint location.

<location>/<group>/<topic>-<partition>/
    changelogs/<version>.<parent>.changelog
    snapshots/<version>.json                    a manifest, written last
    files/<sequence>-<random>                   RocksDB's files, as manifests name them
    pins/<sequence>-<random>                    a reader that is no attempt needs the snapshot of this sequence number,
                                                and everything after it

Several attempts at the partition may work here at the same time: the current one, whose commits succeed, and older
ones that have not noticed yet that they are fenced. This is safe because every name begins with the sequence number of
the version that it was created for, and an attempt deletes only names up to a version that it has committed itself. It
creates names only for later versions than it has started with. An older attempt's versions precede all of a newer
attempt's, so it cannot delete what the newer one has written or is writing.
"""

from __future__ import annotations

import json
import math
import secrets
from collections import deque
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.errors import check_format
from stream_runtime.fault_points import FaultPoint, reach
from stream_runtime.faults import NEUTRAL_FAULTS, Faults
from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, DamagedDataError
from stream_runtime.state.deadline import in_thread
from stream_runtime.state.download import Download
from stream_runtime.state.object_store import MissingFileError
from stream_runtime.state.versions import (
    NOTHING,
    MissingVersionError,
    newest_unneeded_changelog,
    oldest_kept_snapshot,
    plan_restore,
    sequence,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from cdc_common.errors.codes import CdcError
    from stream_runtime.records import SourcePartition
    from stream_runtime.state.object_store import ObjectEntry, ObjectStore

MANIFEST_VERSION = 1
_MANIFEST = ".json"
_CHANGELOGS_AHEAD = 8  # that are read while one is decoded
PIN_SECONDS = 6 * 3600.0  # a pin that is older was left by a reader that has died


class StoredFile(NamedTuple):
    """A RocksDB file in the checkpoint location."""

    # Its name in RocksDB.
    name: str
    # Its name in files/.
    stored: str
    # Its size, in bytes.
    size: int
    # The BLAKE2b of its content, in hex.
    digest: str


class Manifest(NamedTuple):
    """The list of a snapshot's files."""

    # The version of the state.
    version: str
    # The files.
    files: tuple[StoredFile, ...]


class RetentionSettings(NamedTuple):
    """The time for which changelogs are kept."""

    # At least this many versions.
    versions: int
    # At least this many seconds.
    seconds: float


class CheckpointStore:
    """CdcError(STATE_DAMAGED) names the file that is not what was written."""

    def __init__(
        self, store: ObjectStore, group: str, partition: SourcePartition, faults: Faults = NEUTRAL_FAULTS
    ) -> None:
        self._faults = faults
        self.partition = partition
        self._store = store
        self._folder = f"{group}/{partition}"

    def parents(self) -> dict[str, str]:
        """Return each version that has a changelog, and its parent."""
        names = (changelog.parse_file_name(name) for name in self._store.list(f"{self._folder}/changelogs"))
        return dict(name for name in names if name is not None)

    def snapshots(self) -> list[str]:
        """The versions that have a snapshot, oldest first."""
        names = self._store.list(f"{self._folder}/snapshots")
        return sorted(name.removesuffix(_MANIFEST) for name in names if name.endswith(_MANIFEST))

    def newest_version(self) -> str:
        """The highest stored version, crashed attempts included: clean-ups compare the sequence numbers of names."""
        return max((NOTHING, *self.parents(), *self.snapshots()), key=sequence)

    def delete_all(self) -> None:
        """Delete everything that is stored of the source partition, by any attempt."""
        for folder in ("snapshots", "changelogs", "files", "pins"):
            self._store.delete(f"{self._folder}/{folder}/{name}" for name in self._names(folder))

    @contextmanager
    def pinned(self, version: str) -> Iterator[None]:
        """Pin `version`, which is committed, while a reader restores it: no attempt deletes what the restore needs.

        An attempt that was already cleaning up may still do so. `restore` then fails with CdcError(STATE_DAMAGED), and
        a version that was committed since can be restored.
        """
        try:
            base = plan_restore(version, None, self.parents(), self.snapshots()).base
        except MissingVersionError as error:
            raise self.missing_changelog(error.version) from error
        path = f"{self._folder}/pins/{base.partition('-')[0]}-{secrets.token_hex(4)}"
        self._store.write(path, b"pin")
        try:
            yield
        finally:
            self._store.delete([path])

    def write_changelog(self, entry: Changelog) -> None:
        self._store.write(self._changelog_path(entry.head.version, entry.parent), changelog.encode(entry))

    def read_changelog(self, version: str, parent: str) -> Changelog:
        path = self._changelog_path(version, parent)
        try:
            entry = changelog.decode(self._read(path))
        except DamagedDataError as error:
            raise self.damaged(path, str(error)) from error
        if (entry.head.version, entry.parent) != (version, parent):
            raise self.damaged(path, "its version is not the one in its name")
        return entry

    def read_changelogs(self, versions: Iterable[tuple[str, str]]) -> Iterator[Changelog]:
        """The changelogs of these versions, each with its parent, in order. The next ones are on their way already."""
        left = iter(versions)
        ahead = deque["Future[Changelog]"]()
        while True:
            for version, parent in islice(left, 1 + _CHANGELOGS_AHEAD - len(ahead)):
                ahead.append(in_thread(partial(self.read_changelog, version, parent)))
            if not ahead:
                return
            yield ahead.popleft().result()

    def read_manifest(self, version: str) -> Manifest:
        path = self.manifest_path(version)
        digest, _, body = self._read(path).partition(b"\n")
        if digest.decode(errors="replace") != _digest_of(body):
            raise self.damaged(path, "its checksum is wrong")
        fields = json.loads(body)
        check_format(f"The snapshot {self._store.full_path(path)}", fields["format"], MANIFEST_VERSION)
        return Manifest(fields["version"], tuple(StoredFile(*file) for file in fields["files"]))

    def write_snapshot(
        self, version: str, files: Iterable[tuple[Path, str]], base: Manifest | None, *, is_own: bool
    ) -> Manifest:
        """Store the files (with the digests of their contents) as the snapshot of `version`.

        Files that `base`, the newest snapshot, holds with the same content are not sent again. If `base` is not this
        attempt's own, an older attempt may still delete its files: they then get second names.
        """
        known = {(file.size, file.digest): file.stored for file in base.files} if base else {}
        stored = []
        for path, digest in files:
            size = path.stat().st_size
            name = known.get((size, digest))
            if name is None or not is_own:
                name = self._store_file(version, path, name)
                reach(FaultPoint.IN_UPLOAD)
            stored.append(StoredFile(path.name, name, size, digest))
        reach(FaultPoint.AFTER_UPLOAD)
        manifest = Manifest(version, tuple(stored))
        body = json.dumps({"format": MANIFEST_VERSION, "version": version, "files": stored}).encode()
        self._store.write(self.manifest_path(version), _digest_of(body).encode() + b"\n" + body)
        return manifest

    def _store_file(self, version: str, path: Path, known: str | None) -> str:
        """A new name in files/ with the content of `path`: a copy of the stored file `known` if that still exists."""
        name = f"{version.partition('-')[0]}-{secrets.token_hex(8)}"
        if known is None or not self._store.copy(self.file_path(known), self.file_path(name)):
            self._store.upload(self.file_path(name), path)
        return name

    def fetch_snapshot(self, manifest: Manifest, target: Path) -> None:
        """Download the snapshot's files into the folder `target`."""
        files = {target / file.name: file for file in manifest.files}
        downloads = [Download(self.file_path(file.stored), local, file.size) for local, file in files.items()]
        digests: dict[Path, Future[str]] = {}
        for done in self._store.download(downloads):
            digests[done.target] = in_thread(partial(digest_of_file, done.target))
            reach(FaultPoint.IN_FETCH)
        for local, digest in digests.items():
            file = files[local]
            if local.stat().st_size != file.size or digest.result() != file.digest:
                raise self.damaged(self.file_path(file.stored), "its checksum is wrong")

    def check_file(self, file: StoredFile) -> None:
        """Raise MissingFileError or CdcError(STATE_DAMAGED) unless the file is what was written."""
        path = self.file_path(file.stored)
        data = self._read(path)
        if len(data) != file.size or _digest_of(data) != file.digest:
            raise self.damaged(path, "its checksum is wrong")

    def entries(self) -> tuple[Sequence[ObjectEntry], Sequence[ObjectEntry], Sequence[ObjectEntry]]:
        """Everything that is stored: changelogs, manifests, RocksDB files."""
        changelogs, snapshots, files = (
            self._store.entries(f"{self._folder}/{folder}") for folder in ("changelogs", "snapshots", "files")
        )
        return changelogs, snapshots, files

    def clean_up(self, committed: str) -> None:
        """Delete the snapshots, with their files, that neither `committed` nor a later version needs. This attempt has
        stored a snapshot of `committed`. Files that no manifest names are left over from deleted snapshots and failed
        uploads.
        """
        last = min(oldest_kept_snapshot(committed, self.snapshots()), self._oldest_pin()) - 1
        self._delete("snapshots", self._names("snapshots"), last)
        reach(FaultPoint.AFTER_MANIFESTS)
        files = self._names("files")  # listed before the manifests: files of later ones are newer than `committed`
        needed = set[str]().union(*(self._file_names(version) for version in self.snapshots()))
        self._delete("files", (name for name in files if name not in needed), sequence(committed))

    def clean_up_changelogs(self, committed: str, kept: RetentionSettings) -> None:
        """Delete the changelogs that neither `committed` nor a later version needs, and that `kept` does not keep."""
        changelogs = self._store.entries(f"{self._folder}/changelogs")
        # By the location's clock, not a worker's: the newest changelog has just been written.
        oldest = max((entry.written for entry in changelogs), default=0.0) - kept.seconds
        young = [entry.name for entry in changelogs if entry.written > oldest]
        last = newest_unneeded_changelog(committed, self.snapshots(), kept.versions, young)
        self._delete("changelogs", (entry.name for entry in changelogs), min(last, self._oldest_pin()))

    def _oldest_pin(self) -> float:
        """The lowest sequence number that a pin names; infinite without one. Pins of dead readers are deleted."""
        pins = self._store.entries(f"{self._folder}/pins")
        if not pins:
            return math.inf
        written = [entry.written for entry in (*pins, *self._store.entries(f"{self._folder}/snapshots"))]
        oldest = max(written) - PIN_SECONDS  # by the location's clock, as above
        self._store.delete(f"{self._folder}/pins/{pin.name}" for pin in pins if pin.written < oldest)
        return min((_sequence_of(pin.name) for pin in pins if pin.written >= oldest), default=math.inf)

    def _names(self, folder: str) -> list[str]:
        return [entry.name for entry in self._store.entries(f"{self._folder}/{folder}")]

    def _delete(self, folder: str, names: Iterable[str], last: float) -> None:
        """Delete the names created for versions up to the sequence number `last`."""
        self._store.delete(f"{self._folder}/{folder}/{name}" for name in names if _sequence_of(name) <= last)

    def damaged(self, path: str, problem: str) -> CdcError:
        return self._faults.state_damaged(self.partition, self.full_path(path), problem)

    def full_path(self, path: str) -> str:
        return self._store.full_path(path)

    def missing_changelog(self, version: str) -> CdcError:
        return self.damaged(
            f"{self._folder}/changelogs/{version}.*", "it is missing, and no later snapshot or local state replaces it"
        )

    def _read(self, path: str) -> bytes:
        data = self._store.read(path)
        if data is None:
            raise MissingFileError(path)
        return data

    def _file_names(self, version: str) -> set[str]:
        try:
            return {file.stored for file in self.read_manifest(version).files}
        except MissingFileError:  # another attempt is cleaning up too
            return set()

    def _changelog_path(self, version: str, parent: str) -> str:
        return f"{self._folder}/changelogs/{changelog.file_name(version, parent)}"

    def manifest_path(self, version: str) -> str:
        return f"{self._folder}/snapshots/{version}{_MANIFEST}"

    def file_path(self, name: str) -> str:
        return f"{self._folder}/files/{name}"


def digest_of_file(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1024 * 1024):
            digest.update(block)
    return digest.hexdigest()


def with_digests(paths: Iterable[Path], known: dict[str, str]) -> Iterator[tuple[Path, str]]:
    """The files with the digests of their contents. `known` caches those of SST files by name: they never change."""
    for path in paths:
        digest = known.get(path.name) or digest_of_file(path)
        if path.suffix == ".sst":
            known[path.name] = digest
        yield path, digest


def _sequence_of(name: str) -> float:
    """The sequence number of a file's name. A name without one is not a job's: infinite, never deleted."""
    number, hyphen, _ = name.partition("-")
    return int(number) if hyphen and number.isdigit() else math.inf


def _digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
