"""What `cassandra-materializer state verify` does: read all that is stored of a partition, and change nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from cdc_program.errors import CdcError
from materializer.store.checkpoints import MissingFileError
from materializer.store.versions import NOTHING, MissingVersionError, plan_restore

if TYPE_CHECKING:
    from collections.abc import Callable

    from materializer.store.checkpoints import CheckpointStore


T = TypeVar("T")


class Verdict(NamedTuple):
    """How many files were read, of how many bytes, and what is wrong with which. `unnamed` files, which no manifest
    names, wait for a clean-up.
    """

    files: int
    bytes: int
    unnamed: int
    problems: tuple[str, ...]


def verify(history: CheckpointStore, committed: str | None) -> Verdict:
    """Whether every file can be read and is as it was written, and changelogs lead from a snapshot (or from nothing) to
    the committed version. What a running job cleans up meanwhile is no problem.
    """
    walk = _Walk()
    for version, parent in history.parents().items():
        walk.read(partial(history.read_changelog, version, parent))
    named = set[str]()
    for version in history.snapshots():
        manifest = walk.read(partial(history.read_manifest, version))
        for file in manifest.files if manifest else ():
            if file.stored in named:
                continue
            named.add(file.stored)
            gone = len(walk.gone)
            walk.read(partial(history.check_file, file))
            if len(walk.gone) > gone and version in history.snapshots():
                walk.problems.append(history.damaged(walk.gone[-1], "it is missing").problem)
    changelogs, snapshots, files = history.entries()
    try:
        plan_restore(committed or NOTHING, None, history.parents(), history.snapshots())
    except MissingVersionError as error:
        walk.problems.append(history.missing_changelog(error.version).problem)
    size = sum(each.size for each in (*changelogs, *snapshots, *files))
    unnamed = sum(each.name not in named for each in files)
    return Verdict(len(changelogs) + len(snapshots) + len(files), size, unnamed, tuple(walk.problems))


class _Walk:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self.gone: list[str] = []

    def read(self, look: Callable[[], T]) -> T | None:
        """What `look` gives, None where it cannot: a problem, or something gone."""
        try:
            return look()
        except MissingFileError as error:
            self.gone.append(str(error))
        except CdcError as error:
            self.problems.append(error.problem)
        return None
