"""Parts of states on their way from the old raw partitions to the new ones.

A part is a file of entries for one target, in the form of a changelog. Parts have names of their own, which only the
results of tasks name: those of a task that has failed are not used, and are deleted with the others at the end.
"""

from __future__ import annotations

import secrets
from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.deadline import in_thread
from stream_runtime.state.object_store import MissingFileError, ObjectStore
from stream_runtime.state.versions import NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from materializer.settings import MaterializerSettings

_PART_BYTES = 8 * 1024 * 1024
_MEMORY_BYTES = 128 * 1024 * 1024  # of parts that are not full
_AT_ONCE = 4  # reads, or writes
_HEAD = Head(NOTHING, 0, 0, 0)  # a part is not a state


class PartsPlace(NamedTuple):
    """The place of stored parts."""

    # A location as materializer.checkpoint_location names one; empty for the checkpoint location itself.
    location: str
    # A folder of that location.
    folder: str

    def store(self, settings: MaterializerSettings) -> ObjectStore:
        return ObjectStore(self.location) if self.location else object_store(settings)

    def delete_all(self, settings: MaterializerSettings) -> None:
        store = self.store(settings)
        store.delete(f"{self.folder}/{entry.name}" for entry in store.entries(self.folder))


class PartWriter:
    """Writes the entries of one source state to parts, by their targets. `names`: the parts of each target, in order.

    Memory is bounded whatever the number of targets: the largest part goes first.
    """

    def __init__(self, place: PartsPlace, settings: MaterializerSettings) -> None:
        self.names: dict[int, list[str]] = {}
        self._place = place
        self._store = place.store(settings)
        self._writes: dict[int, dict[bytes, bytes | None]] = {}
        self._sizes: dict[int, int] = {}
        self._held = 0
        self._running = deque["Future[None]"]()

    def add(self, target: int, key: bytes, value: bytes) -> None:
        self._writes.setdefault(target, {})[key] = value
        size = len(key) + len(value)
        self._sizes[target] = self._sizes.get(target, 0) + size
        self._held += size
        if self._sizes[target] >= _PART_BYTES:
            self._write(target)
        elif self._held >= _MEMORY_BYTES:
            self._write(max(self._sizes, key=lambda candidate: self._sizes[candidate]))

    def finish(self) -> dict[int, list[str]]:
        """Write what is left: the names."""
        for target in list(self._writes):
            self._write(target)
        while self._running:
            self._running.popleft().result()
        return self.names

    def _write(self, target: int) -> None:
        writes = self._writes.pop(target)
        self._held -= self._sizes.pop(target)
        name = f"{target}-{secrets.token_hex(8)}"
        self.names.setdefault(target, []).append(name)
        data = changelog.encode(Changelog(_HEAD, NOTHING, 0, writes))
        while len(self._running) >= _AT_ONCE:
            self._running.popleft().result()
        self._running.append(in_thread(partial(self._store.write, f"{self._place.folder}/{name}", data)))


def read_parts(
    place: PartsPlace, settings: MaterializerSettings, names: Iterable[str]
) -> Iterator[Mapping[bytes, bytes | None]]:
    """The entries of parts, in order. MissingFileError if another run has deleted one."""
    store = place.store(settings)
    left = iter(names)
    ahead = deque["Future[Changelog]"]()
    while True:
        for name in islice(left, _AT_ONCE - len(ahead)):
            ahead.append(in_thread(partial(_read_part, store, f"{place.folder}/{name}")))
        if not ahead:
            return
        yield ahead.popleft().result().writes


def _read_part(store: ObjectStore, path: str) -> Changelog:
    data = store.read(path)
    if data is None:
        raise MissingFileError(path)
    return changelog.decode(data)


def by_target(written: Sequence[Mapping[int, Sequence[str]]]) -> dict[int, list[str]]:
    """The parts of each target, of all sources."""
    found: dict[int, list[str]] = {}
    for names in written:
        for target, own in names.items():
            found.setdefault(target, []).extend(own)
    return found
