"""`cassandra-materializer state verify`: reads every stored file of raw partitions, and changes nothing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import click

from cdc_common.errors.codes import CdcError, Code
from materializer.commands.stored_partitions import describe_place, list_stored_partitions, read_positions
from materializer.errors import RAW_FAULTS
from stream_runtime.state.checkpoint_location import object_store
from stream_runtime.state.checkpoints import CheckpointStore
from stream_runtime.state.object_store import MissingFileError
from stream_runtime.state.versions import NOTHING, MissingVersionError, plan_restore

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from materializer.records import RawPartition
    from materializer.settings import Settings


T = TypeVar("T")


class Verdict(NamedTuple):
    """The result of reading a state's files."""

    # The number of files that were read.
    files: int
    # Their size.
    bytes: int
    # The number of files that no manifest names. A clean-up will delete them.
    unreferenced: int
    # A sentence for each problem.
    problems: tuple[str, ...]


def verify_states(settings: Settings, names: Sequence[str]) -> None:
    """Verify these raw partitions, or all, and print a line for each and for each problem.

    CdcError(STATE_DAMAGED) at the end if any file is missing or damaged.
    """
    store = object_store(settings.materializer)
    group = settings.materializer.group_id
    raw_partitions = [
        raw_partition
        for raw_partition in list_stored_partitions(store, group)
        if not names or str(raw_partition) in names
    ]
    if not raw_partitions and not names:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"No state is stored: {describe_place(settings.materializer)}.",
            "Set materializer.checkpoint_location and materializer.group_id as the job has them.",
        )
    unknown = set(names) - {str(raw_partition) for raw_partition in raw_partitions}
    if unknown:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"No state is stored for {', '.join(sorted(unknown))}.",
            "Name raw partitions as `state ls` does.",
        )
    damaged = 0
    for raw_partition in raw_partitions:
        position = read_positions(settings, [raw_partition])[raw_partition]  # of now: the job deletes old versions
        verdict = verify_state(CheckpointStore(store, group, raw_partition, RAW_FAULTS), position and position.version)
        damaged += bool(verdict.problems)
        _print_verdict(raw_partition, verdict)
    if damaged:
        raise CdcError(
            Code.STATE_DAMAGED,
            f"{damaged} of {len(raw_partitions)} raw partitions have missing or damaged files.",
            "The lines above name the files. docs/reference/errors.md says what to do.",
        )


def _print_verdict(raw_partition: RawPartition, verdict: Verdict) -> None:
    result = "damaged" if verdict.problems else "ok"
    unreferenced = f", {verdict.unreferenced} to be cleaned up" if verdict.unreferenced else ""
    click.echo(f"{result}  {raw_partition}  {verdict.files} files, {verdict.bytes} bytes{unreferenced}")
    for problem in verdict.problems:
        click.echo(f"    {problem}")


def verify_state(checkpoints: CheckpointStore, committed: str | None) -> Verdict:
    """Check that changelogs lead to the version, which was committed just now, and that every file can be read and is
    intact.

    The changelogs start at a snapshot or at nothing. Files that a running job deletes during the check are no problem.
    """
    files = _Files()
    try:
        plan_restore(committed or NOTHING, None, checkpoints.parents(), checkpoints.snapshots())
    except MissingVersionError as error:
        files.problems.append(checkpoints.missing_changelog(error.version).problem)
    for version, parent in checkpoints.parents().items():
        files.try_read(partial(checkpoints.read_changelog, version, parent))
    referenced = set[str]()
    for version in checkpoints.snapshots():
        manifest = files.try_read(partial(checkpoints.read_manifest, version))
        for file in manifest.files if manifest else ():
            if file.stored in referenced:
                continue
            referenced.add(file.stored)
            gone = len(files.gone)
            files.try_read(partial(checkpoints.check_file, file))
            if len(files.gone) > gone and version in checkpoints.snapshots():
                files.problems.append(checkpoints.damaged(files.gone[-1], "it is missing").problem)
    changelogs, snapshots, stored_files = checkpoints.entries()
    size = sum(file.size for file in (*changelogs, *snapshots, *stored_files))
    unreferenced = sum(file.name not in referenced for file in stored_files)
    return Verdict(len(changelogs) + len(snapshots) + len(stored_files), size, unreferenced, tuple(files.problems))


class _Files:
    """Collects what goes wrong while files are read."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.gone: list[str] = []

    def try_read(self, read: Callable[[], T]) -> T | None:
        """The content; None if the file is gone or damaged, which is recorded."""
        try:
            return read()
        except MissingFileError as error:
            self.gone.append(str(error))
        except CdcError as error:
            self.problems.append(error.problem)
        return None
