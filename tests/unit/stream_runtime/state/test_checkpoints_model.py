"""Attempts at one partition that run, hang, crash and clean up in any order: the committed version can be restored.

Each attempt is a thread that stops before every access to the checkpoint location; what Hypothesis draws lets one of
them go on. An attempt whose successor has begun can commit no more, but goes on with everything else.
"""

from __future__ import annotations

import tempfile
import threading
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from materializer.records import RawPartition
from stream_runtime.state.changelog import Changelog, Head
from stream_runtime.state.checkpoints import CheckpointStore, Manifest, RetentionSettings
from stream_runtime.state.object_store import MissingFileError, ObjectEntry
from stream_runtime.state.versions import NOTHING, next_version, plan_restore, sequence
from tests.support.examples import IS_EXHAUSTIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from stream_runtime.state.download import Download

SHARDS = 7  # "SST files" of a state: a version changes one of them
SNAPSHOT_EVERY = 2
EXAMPLES = 1500 if IS_EXHAUSTIVE else 20
WAIT_SECONDS = 30.0
KEPT = [RetentionSettings(1, 0), RetentionSettings(3, 0), RetentionSettings(1, 40)]


class Crashed(BaseException):
    """An attempt's end by kill -9, which nothing may catch."""


class MemoryStore:
    """A ObjectStore in memory, whose clock goes on with each access; `before` is called with each."""

    def __init__(
        self, files: dict[str, tuple[bytes, float]], clock: Iterator[int], before: Callable[[str], None]
    ) -> None:
        self._files, self._clock, self._before = files, clock, before

    def full_path(self, path: str) -> str:
        return path

    def list(self, folder: str) -> Sequence[str]:
        return [entry.name for entry in self.entries(folder)]

    def entries(self, folder: str) -> Sequence[ObjectEntry]:
        self._before(f"list {folder}")
        return [
            ObjectEntry(path.rpartition("/")[2], len(data), written)
            for path, (data, written) in self._files.items()
            if path.rpartition("/")[0] == folder
        ]

    def read(self, path: str) -> bytes | None:
        self._before(f"read {path}")
        return self._files[path][0] if path in self._files else None

    def download(self, files: Sequence[Download]) -> Iterator[Download]:
        for file in files:
            data = self.read(file.path)
            if data is None:
                raise MissingFileError(file.path)
            file.target.write_bytes(data)
            yield file

    def upload(self, path: str, source: Path) -> None:
        self.write(path, source.read_bytes())

    def write(self, path: str, data: bytes) -> None:
        self._before(f"write {path}")
        self._files[path] = data, float(next(self._clock))

    def copy(self, source: str, target: str) -> bool:
        self._before(f"copy {target}")
        if source in self._files:
            self._files[target] = self._files[source][0], float(next(self._clock))
        return source in self._files

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._before(f"delete {path}")
            self._files.pop(path, None)


class World:
    """The location, and what Kafka holds: the committed version and whose commits count."""

    def __init__(self, folder: Path, kept: RetentionSettings) -> None:
        self.folder = folder
        self.kept = kept
        self.files: dict[str, tuple[bytes, float]] = {}
        self.clock = iter(range(10**9))
        self.committed = NOTHING
        self.owner: Attempt | None = None
        self.shards = {NOTHING: (0,) * SHARDS}  # of each version: what each of its files holds

    def checkpoints(self, before: Callable[[str], None] = lambda _: None) -> CheckpointStore:
        store = MemoryStore(self.files, self.clock, before)
        return CheckpointStore(store, "group", RawPartition("raw", 0))  # type: ignore[arg-type]  # it has the methods

    def sst_files(self, version: str, packing: str) -> dict[Path, str]:
        """A checkpoint's files, and the digests of their contents, which differ where workers packed them otherwise."""
        made = {}
        for shard, value in enumerate(self.shards[version]):
            path = self.folder / f"{shard}-{value}-{packing}"
            path.write_text(f"{shard} {value} {packing}")
            made[path] = blake2b(path.read_bytes(), digest_size=16).hexdigest()
        return made

    def check(self) -> None:
        """A new worker comes to the committed version, and to what that holds."""
        checkpoints = self.checkpoints()
        parents = checkpoints.parents()
        plan = plan_restore(self.committed, None, parents, checkpoints.snapshots())
        shards = dict(enumerate(self.shards[NOTHING]))
        if plan.base != NOTHING:
            target = Path(tempfile.mkdtemp(dir=self.folder))
            checkpoints.fetch_snapshot(checkpoints.read_manifest(plan.base), target)
            values = [path.read_text().split() for path in target.iterdir()]
            shards = {int(shard): int(value) for shard, value, _ in values}
        for version in plan.changelogs:
            writes = checkpoints.read_changelog(version, parents[version]).writes
            shards |= {int(shard): int(value or b"0") for shard, value in writes.items()}
        assert tuple(shards[shard] for shard in range(SHARDS)) == self.shards[self.committed]


class Attempt:
    """A task of the partition; `access` is what it is about to do at the location."""

    def __init__(self, world: World, packing: str = "same") -> None:
        self._world, self._packing = world, packing
        self.access = ""
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._is_killed = False
        self.is_over = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        world.owner = self
        self._at = world.committed  # read once older producers are fenced
        self._thread.start()
        self._await()

    def step(self) -> None:
        """Up to before its next access."""
        self._go.release()
        self._await()

    def kill(self) -> None:
        if not self.is_over:
            self._is_killed = True
            self.step()
        self._thread.join(WAIT_SECONDS)

    def _await(self) -> None:
        assert self._stopped.acquire(timeout=WAIT_SECONDS)
        if self._error is not None:
            raise self._error

    def _pause(self, access: str) -> None:
        self.access = access
        self._stopped.release()
        self._go.acquire()
        if self._is_killed:
            raise Crashed

    def _run(self) -> None:
        try:
            with suppress(Crashed):
                self._work(self._world.checkpoints(self._pause))
        except BaseException as error:  # noqa: BLE001 - handed over to the test
            self._error = error
        self.is_over = True
        self._stopped.release()

    def _work(self, checkpoints: CheckpointStore) -> None:
        """Work as PartitionTask does."""
        self._pause("begin")
        stored = checkpoints.snapshots()
        snapshot: Manifest | None = None
        with suppress(MissingFileError):  # the task warns, and tries later
            snapshot = checkpoints.read_manifest(stored[-1]) if stored else None
        is_own = False
        while True:
            self._store_version(checkpoints)
            if self._world.owner is not self:
                return
            self._world.committed = self._at
            last = snapshot.version if snapshot else NOTHING
            if sequence(self._at) - sequence(last) >= SNAPSHOT_EVERY:
                files = self._world.sst_files(self._at, self._packing)
                snapshot, is_own = checkpoints.write_snapshot(self._at, files.items(), snapshot, is_own=is_own), True
                checkpoints.clean_up_changelogs(self._at, self._world.kept)
                checkpoints.clean_up(self._at)

    def _store_version(self, checkpoints: CheckpointStore) -> None:
        before = self._at
        self._at = version = next_version(before)
        number = sequence(version)
        shards = list(self._world.shards[before])
        shards[number % SHARDS] = hash(version) % 10**9
        self._world.shards[version] = tuple(shards)
        writes: dict[bytes, bytes | None] = {b"%d" % (number % SHARDS): b"%d" % shards[number % SHARDS]}
        checkpoints.write_changelog(Changelog(Head(version, number, 0, 1), before, number - 1, writes))


Step = tuple[str, int, int]
steps: st.SearchStrategy[Step] = st.tuples(
    st.sampled_from(["run", "run", "run", "run", "start", "kill"]), st.integers(0, 5), st.integers(1, 40)
)


def start(world: World, which: int) -> Attempt:
    return Attempt(world, ("same", f"{len(world.shards)}")[which % 2])


@pytest.mark.timeout(3600)  # a second for three examples, of many
@settings(max_examples=EXAMPLES)
@given(st.lists(steps, min_size=5, max_size=40), st.sampled_from(KEPT))
def test_the_committed_version_can_be_restored_at_any_moment(script: list[Step], kept: RetentionSettings) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), kept)
        attempts = [Attempt(world)]
        try:
            for what, which, count in script:
                if what == "start":
                    attempts.append(start(world, which))
                elif what == "kill":
                    attempts[which % len(attempts)].kill()
                else:
                    run(world, attempts[-1 - which % len(attempts)], count)
                world.check()
        finally:
            for attempt in attempts:
                attempt.kill()


def test_two_late_uploads_do_not_take_a_third_ones_files(tmp_path: Path) -> None:
    """All three begin from the same snapshot, which the second drops when the third has taken names from it."""
    world = World(tmp_path, KEPT[0])
    first = Attempt(world)
    until(first, "delete")
    late = []
    for packing in ("one", "two", "same"):
        late.append(Attempt(world, packing))
        until(late[-1], "write group/raw-0/snapshots/")
    until(late[0], "list")
    until(late[1], "write group/raw-0/changelogs/")
    until(late[2], "list")
    world.check()
    for attempt in (first, *late):
        attempt.kill()


def until(attempt: Attempt, access: str) -> None:
    attempt.step()
    while not attempt.access.startswith(access) and not attempt.is_over:
        attempt.step()


def run(world: World, attempt: Attempt, count: int) -> None:
    for _ in range(count):
        if not attempt.is_over:
            attempt.step()
            world.check()


@given(st.lists(steps, max_size=25), st.sampled_from(KEPT[:2]))
@settings(max_examples=EXAMPLES // 3)
def test_what_crashed_attempts_left_goes_in_time(script: list[Step], kept: RetentionSettings) -> None:
    """An attempt that is left alone keeps, after any past, two snapshots, their files and the changelogs asked for."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), kept)
        attempts = [Attempt(world)]
        for what, which, count in script:
            if what == "start":
                attempts.append(start(world, which))
            run(world, attempts[which % len(attempts)], count)
        for attempt in attempts:
            attempt.kill()
        last = Attempt(world)
        goal = sequence(world.committed) + 4 * SNAPSHOT_EVERY + kept.versions
        cleaned = 0
        while cleaned < goal:
            last.step()
            names = {path.partition("raw-0/")[2] for path in world.files}
            checkpoints = world.checkpoints()
            manifests = [checkpoints.read_manifest(version) for version in checkpoints.snapshots()]
            needed = {f"files/{file.stored}" for manifest in manifests for file in manifest.files}
            is_clean = len(manifests) == 2 and needed == {name for name in names if name.startswith("files/")}
            cleaned = sequence(world.committed) if is_clean else cleaned
            assert sequence(world.committed) < goal + 2 * SNAPSHOT_EVERY, sorted(names)
        last.kill()
        changelogs = [name for name in names if name.startswith("changelogs/")]
        assert len(changelogs) <= max(2 * SNAPSHOT_EVERY, kept.versions) + SNAPSHOT_EVERY + 1
