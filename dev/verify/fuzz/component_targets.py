"""Fuzz targets for the files beside Data.db: CompressionInfo.db, TOC.txt, Digest.crc32 and the indexes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cassandra_storage.files.sstables import SSTable, SSTableFile, verify_digest
from cassandra_storage.files.table_sstables import find_partition
from cassandra_storage.formats.errors import FormatError
from cassandra_storage.formats.primitives.murmur3 import decorated_token
from cassandra_storage.formats.sstable.compression_info import parse_compression_info
from cassandra_storage.formats.sstable.file_name import COMPRESSION_INFO, DIGEST, INDEX, PARTITIONS, ROWS, SUMMARY, TOC
from dev.verify.fuzz.target import SEED_BYTES, Target, folder, is_read
from tests.support.vectors import indexed_sstables, sstables

if TYPE_CHECKING:
    from cassandra_storage.formats.sstable.partition_index import IndexEntry

_FORMS = ("3.11", "4.0", "5.0-oa", "5.0-bti")
_INDEXES = (INDEX, SUMMARY, PARTITIONS, ROWS)
_EDIT = 3  # bytes: a place (2) and the byte that it gets


def _files() -> list[SSTableFile]:
    return [file for form in _FORMS for file, _, _ in sstables.load(form).files()]


def compression_info() -> Target:
    """The first byte says whether the version has a largest compressed length."""

    def run(data: bytes) -> bool:
        info, has_limit = data[1:], bool(data[:1] > b"\x00")
        return is_read(lambda: parse_compression_info(info, len(info), has_max_compressed_length=has_limit))

    seeds = set()
    for file in _files():
        path = file.path(COMPRESSION_INFO)
        if path.exists():
            seeds.add(bytes((file.descriptor.format.has_max_compressed_length,)) + path.read_bytes())
    return Target(run, sorted((seed for seed in seeds if len(seed) < SEED_BYTES), key=len)[:64])


def component_list() -> Target:
    """TOC.txt and, after a zero byte, Digest.crc32, as files."""
    file = min(_files(), key=lambda sstable: sstable.data_path.stat().st_size)
    copy = SSTableFile(folder("list"), file.descriptor)
    shutil.copy(file.data_path, copy.data_path)

    def run(data: bytes) -> bool:
        toc, _, digest = data.partition(b"\x00")
        copy.path(TOC).write_bytes(toc)
        copy.path(DIGEST).write_bytes(digest)
        is_listed = is_read(copy.missing)
        return is_read(lambda: verify_digest(copy)) and is_listed

    digest = file.path(DIGEST).read_bytes()
    return Target(run, sorted({sstable.path(TOC).read_bytes() + b"\x00" + digest for sstable in _files()}))


class _Indexed(NamedTuple):
    """An open SSTable of `ks.indexed` in a folder of its own. `tokens`: of its partitions."""

    sstable: SSTable
    components: Sequence[str]
    intact: Sequence[bytes]
    tokens: Sequence[int]

    def find(self, token: int) -> IndexEntry | None:
        """Find the partition through the SSTable's index, and read it if there is one."""
        entry = find_partition(self.sstable.file, token)
        if entry is not None:
            next(self.sstable.partitions(entry.position), None)
        return entry


@cache
def _indexed() -> list[_Indexed]:
    found = []
    for form in indexed_sstables.FORMS:
        vectors = indexed_sstables.load(form)
        file = min(vectors.files(), key=lambda sstable: sstable.data_path.stat().st_size)
        place = folder(form)
        shutil.copytree(file.folder, place, dirs_exist_ok=True)
        sstable = SSTable(SSTableFile(place, file.descriptor), vectors.table)
        tokens = [decorated_token(partition.key) for partition in sstable.partitions()]
        components = [name for name in _INDEXES if sstable.file.path(name).exists()]
        intact = [sstable.file.path(name).read_bytes() for name in components]
        found.append(_Indexed(sstable, components, intact, tokens))
    return found


def sstable_index() -> Target:
    """The partition of a token through a damaged index. The first byte chooses the SSTable, the second the component,
    two choose the token, and two how much of the file is left; then come edits. A damaged Summary.db changes nothing.
    """
    small = _indexed()
    undamaged = [cache(one.find) for one in small]

    def run(data: bytes) -> bool:
        number = data[0] % len(small) if data else 0
        one, expected = small[number], undamaged[number]
        of = (data[1] if len(data) > 1 else 0) % len(one.components)
        token = one.tokens[int.from_bytes(data[2:4], "big") % len(one.tokens)]
        is_summary = one.components[of] == SUMMARY
        if is_summary:
            expected(token)  # before the damage
        path = one.sstable.file.path(one.components[of])
        path.write_bytes(_edited(one.intact[of], data[4:]))
        try:
            entry = one.find(token)
        except FormatError:
            assert not is_summary
            return False
        finally:
            path.write_bytes(one.intact[of])
        assert not is_summary or entry == expected(token)
        return True

    whole = bytes((0xFF, 0xFF))
    return Target(run, [bytes((form, of, 0, at)) + whole for form in range(3) for of in (0, 1) for at in (1, 200)])


def _edited(intact: bytes, edits: bytes) -> bytes:
    """Two bytes: how much stays, 0xFFFF for all; then edits, each of which falls somewhere in the file."""
    size = int.from_bytes(edits[:2], "big")
    data = bytearray(intact if size == 0xFFFF else intact[: size % (len(intact) + 1)])
    for at in range(2, len(edits) - 2, _EDIT):
        if data:
            data[int.from_bytes(edits[at : at + 2], "big") % len(data)] = edits[at + 2]
    return bytes(data)
