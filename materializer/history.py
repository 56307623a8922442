"""What the checkpoint location holds of one raw partition: its changelogs and its snapshots.

<location>/<group>/<topic>-<partition>/
    changelogs/<version>.<parent>.changelog
    snapshots/<version>.json                    a manifest, written last
    files/<random>                              RocksDB's files, as manifests name them
"""

from __future__ import annotations

import json
import secrets
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from cdc_program.errors import CdcError, Code
from materializer import changelog
from materializer.changelog import Changelog, DamagedError
from materializer.fault_points import FaultPoint, reach
from materializer.position import newer_format
from materializer.versions import garbage

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from materializer.file_store import FileStore
    from materializer.position import RawPartition

MANIFEST_VERSION = 1
_MANIFEST = ".json"


class StoredFile(NamedTuple):
    """A file of RocksDB: its name there, its name in files/, its size and the BLAKE2b of its content (hex)."""

    name: str
    stored: str
    size: int
    digest: str


class Manifest(NamedTuple):
    """A snapshot of the state `version`."""

    version: str
    files: tuple[StoredFile, ...]


class GoneError(Exception):
    """A file that a listing showed is missing: damage, or the clean-up of the partition's former task."""


class PartitionHistory:
    """CdcError(STATE_DAMAGED) names the file that is not as it was written."""

    def __init__(self, store: FileStore, group: str, partition: RawPartition) -> None:
        self._store = store
        self._folder = f"{group}/{partition}"

    def parents(self) -> dict[str, str]:
        """Each version that has a changelog, and its parent."""
        names = (changelog.parse_file_name(name) for name in self._store.list(f"{self._folder}/changelogs"))
        return dict(name for name in names if name is not None)

    def snapshots(self) -> list[str]:
        """The versions of which there is a snapshot, oldest first."""
        names = self._store.list(f"{self._folder}/snapshots")
        return sorted(name.removesuffix(_MANIFEST) for name in names if name.endswith(_MANIFEST))

    def write_changelog(self, entry: Changelog) -> None:
        self._store.write(self._changelog_path(entry.head.version, entry.parent), changelog.encode(entry))

    def read_changelog(self, version: str, parent: str) -> Changelog:
        path = self._changelog_path(version, parent)
        try:
            entry = changelog.decode(self._read(path))
        except DamagedError as error:
            raise self.damaged(path, str(error)) from error
        if (entry.head.version, entry.parent) != (version, parent):
            raise self.damaged(path, "it holds another version than its name says")
        return entry

    def read_manifest(self, version: str) -> Manifest:
        path = self.manifest_path(version)
        digest, _, body = self._read(path).partition(b"\n")
        if digest.decode(errors="replace") != _digest_of(body):
            raise self.damaged(path, "its checksum is wrong")
        fields = json.loads(body)
        if not 1 <= fields["format"] <= MANIFEST_VERSION:
            raise newer_format(f"The snapshot {self._store.full_path(path)}", fields["format"], MANIFEST_VERSION)
        return Manifest(fields["version"], tuple(StoredFile(*file) for file in fields["files"]))

    def write_snapshot(self, version: str, files: dict[Path, str], base: Manifest | None) -> Manifest:
        """Store the files (with the digests of their contents) as the snapshot of `version`.

        What `base`, the newest snapshot, holds with the same content is not sent again. Nothing older may be used so:
        it may be deleted at any moment.
        """
        known = {(file.size, file.digest): file.stored for file in base.files} if base else {}
        stored = []
        for path, digest in files.items():
            size = path.stat().st_size
            name = known.get((size, digest))
            if name is None:
                name = secrets.token_hex(16)
                self._store.upload(path, self._file_path(name))
            stored.append(StoredFile(path.name, name, size, digest))
        reach(FaultPoint.AFTER_UPLOAD)
        manifest = Manifest(version, tuple(stored))
        body = json.dumps({"format": MANIFEST_VERSION, "version": version, "files": stored}).encode()
        self._store.write(self.manifest_path(version), _digest_of(body).encode() + b"\n" + body)
        return manifest

    def fetch_snapshot(self, manifest: Manifest, target: Path) -> None:
        """Put the snapshot's files into the folder `target`."""
        for file in manifest.files:
            path = self._file_path(file.stored)
            local = target / file.name
            if not self._store.download(path, local):
                raise GoneError(path)
            if local.stat().st_size != file.size or digest_of_file(local) != file.digest:
                raise self.damaged(path, "its checksum is wrong")

    def clean_up(self, committed: str, kept_versions: int) -> None:
        """Delete what neither `committed` nor any version after it needs."""
        parents = self.parents()
        unneeded = garbage(committed, parents, self.snapshots(), kept_versions)
        self._store.delete(self._changelog_path(version, parents[version]) for version in unneeded.changelogs)
        reach(FaultPoint.IN_CLEANUP)
        dropped = set[str]()
        for version in unneeded.snapshots:
            dropped |= self._file_names(version)
        for version in unneeded.snapshots:
            self._store.delete([self.manifest_path(version)])
        if dropped:
            needed = set[str]().union(*(self._file_names(version) for version in self.snapshots()))
            self._store.delete(self._file_path(name) for name in dropped - needed)

    def damaged(self, path: str, problem: str) -> CdcError:
        return CdcError(
            Code.STATE_DAMAGED,
            f"{self._store.full_path(path)} cannot be used: {problem}.",
            "Bring the file back from a backup of the checkpoint location. If it is lost, the partition's state is "
            "lost: delete its folder there, reset its offset, and rebuild the table into a new raw topic.",
        )

    def missing_changelog(self, version: str) -> CdcError:
        return self.damaged(
            f"{self._folder}/changelogs/{version}.*", "it is missing, and no later snapshot or local state replaces it"
        )

    def _read(self, path: str) -> bytes:
        data = self._store.read(path)
        if data is None:
            raise GoneError(path)
        return data

    def _file_names(self, version: str) -> set[str]:
        try:
            return {file.stored for file in self.read_manifest(version).files}
        except GoneError:  # another task cleans up too
            return set()

    def _changelog_path(self, version: str, parent: str) -> str:
        return f"{self._folder}/changelogs/{changelog.file_name(version, parent)}"

    def manifest_path(self, version: str) -> str:
        return f"{self._folder}/snapshots/{version}{_MANIFEST}"

    def _file_path(self, name: str) -> str:
        return f"{self._folder}/files/{name}"


def digest_of_file(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with path.open("rb") as stream:
        while block := stream.read(1024 * 1024):
            digest.update(block)
    return digest.hexdigest()


def digests_of(paths: Iterable[Path], known: dict[str, str]) -> dict[Path, str]:
    """The digests of the files' contents; `known` remembers those of SST files, which never change, by name."""
    result = {}
    for path in paths:
        digest = known.get(path.name) or digest_of_file(path)
        if path.suffix == ".sst":
            known[path.name] = digest
        result[path] = digest
    return result


def _digest_of(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
