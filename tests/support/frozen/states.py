"""Frozen vectors of the materializer's state: whole states with what comes next, and single values.

A state is one changelog with all of its values. Its meaning is what a fixed list of raw messages changes in it: the
present code must go on with an old state as if it had written it.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from cassandra_storage.formats.rows.deletion import LivenessInfo
from cassandra_storage.formats.rows.row import Cell, Row
from materializer.fold.chunk import fold_chunk
from materializer.records import RawRecord
from materializer.rows.settings import DEFAULT_FOLD_SETTINGS, FoldSettings
from stream_runtime.state import changelog
from stream_runtime.state.changelog import Changelog, Head
from tests.support.frozen.messages import DELETION, KEY, RANGE, ROW, STATIC, WRITTEN_US, row
from tests.support.frozen.vectors import Format, Vector, plain
from tests.support.materializer.fold_run import FoldRun
from tests.support.materializer.memory_state import MemoryState
from tests.support.materializer.raw_builder import (
    CATALOG,
    REPAIR,
    WRITER,
    as_image,
    int_bytes,
    raw_record,
    repair_step,
    rows_end,
    snapshot_step,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MS = WRITTEN_US // 1000
HEAD = Head("7-0123456789abcdef", 4711, MS, 1)


class Story(NamedTuple):
    """Chunks that make a state, and those that come next. is_cut: after the first part of the last chunk."""

    before: Sequence[Sequence[RawRecord]]
    after: Sequence[Sequence[RawRecord]]
    settings: FoldSettings = DEFAULT_FOLD_SETTINGS
    is_cut: bool = False


def written(number: int, kind: Any, write: object, *, host: int = 1, key: bytes = KEY, seconds: int = 0) -> RawRecord:  # noqa: ANN401 - a kind
    return raw_record(key, kind, write, offset=number, host=host, timestamp_ms=MS + 1000 * seconds)


def changed(number: int, c: int, text: str) -> RawRecord:
    """A later write to a row."""
    later = Row((int_bytes(c),), {"a": Cell(WRITTEN_US + 1000 * number, text.encode())}, LivenessInfo(WRITTEN_US))
    return written(number, "row", later, seconds=number)


def heartbeat(seconds: int, host: int = 1) -> RawRecord:
    at = MS + 1000 * seconds
    return raw_record(b"", "heartbeat", None, timestamp_ms=at, host=host, clock=at * 1000)


def stories() -> dict[str, Story]:
    rows = [written(1, "row", ROW), written(2, "row", row(3, a=Cell(WRITTEN_US, b"pot"))), written(3, "static", STATIC)]
    expires = [changed(4, 1, "mug"), heartbeat(120)]
    unreadable = RawRecord(KEY, b"\x00\x00\x00\x00\x01", 9, MS)
    return {
        "rows": Story([rows, [written(4, "range_deletion", RANGE)]], [expires]),
        "deletion": Story([rows, [written(4, "partition_deletion", DELETION)]], [[changed(5, 1, "mug")]]),
        "reorder buffer": Story(
            [rows], [[changed(2, 1, "mug")], [heartbeat(200)]], DEFAULT_FOLD_SETTINGS._replace(reorder_ms=60_000)
        ),
        "gap": Story([rows, [unreadable]], [[changed(5, 3, "mug")]]),
        "snapshot": Story(
            [rows, [snapshot_step("running", ms=MS, hosts=(1, 2))]],
            [
                [as_image(written(5, "row", row(20, a=Cell(WRITTEN_US, b"jar"))))],
                [snapshot_step("ended", ms=MS, hosts=(1, 2)), snapshot_step("ended", ms=MS, host=2, hosts=(1, 2))],
                [changed(6, 3, "mug")],
            ],
        ),
        "repair": Story(
            [
                rows,
                [
                    repair_step(KEY, "running", ms=MS),
                    as_image(written(6, "row", row(30, a=Cell(WRITTEN_US, b"lid"))), repair=REPAIR),
                ],
            ],
            [[repair_step(KEY, "ended", ms=MS, flushed_to=7)]],
        ),
        "truncation": Story(
            [rows, [heartbeat(1, host=2)], [rows_end(MS, position=3, ms=MS)]],
            [[changed(5, 1, "mug")], [written(6, "row", row(4, a=Cell(WRITTEN_US + 10, b"urn")), host=2)]],
        ),
        "continuation": Story(
            [
                [written(number, "row", row(number, a=Cell(WRITTEN_US, b"cup"))) for number in range(1, 9)],
                [written(10, "partition_deletion", DELETION)],
            ],
            [[written(10, "partition_deletion", DELETION)]],
            DEFAULT_FOLD_SETTINGS._replace(max_changes=3),
            is_cut=True,
        ),
    }


def make_states() -> list[Vector]:
    """Each state is followed by the messages that come next: a later release may write other ones."""
    found = []
    for name, story in stories().items():
        state = _state_after(story)
        data = changelog.encode(Changelog(HEAD, "6-fedcba9876543210", 4700, dict(sorted(state.data.items()))))
        next_ = [[[*map(_base64, record[:2]), *record[2:]] for record in chunk] for chunk in story.after]
        content = {"settings": {"reorder_ms": story.settings.reorder_ms, "max_changes": story.settings.max_changes}}
        packed = json.dumps({"state": _base64(data), "next": next_, **content}).encode()
        found.append(
            Vector(name, packed, {"head": plain(HEAD), "changes": _changes(state, story.after, story.settings)})
        )
    return found


def read_states(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    content = json.loads(data[name])
    entry = changelog.decode(b64decode(content["state"]))
    state = MemoryState()
    state.apply(entry.writes)
    chunks = [
        [RawRecord(b64decode(key), b64decode(value), *rest) for key, value, *rest in messages]
        for messages in content["next"]
    ]
    settings = DEFAULT_FOLD_SETTINGS._replace(**content["settings"])
    return {"head": plain(entry.head), "changes": _changes(state, chunks, settings)}


def _state_after(story: Story) -> MemoryState:
    run = FoldRun(WRITER, story.settings)
    whole = story.before[:-1] if story.is_cut else story.before
    for chunk in whole:
        run.chunk(*chunk)
    if story.is_cut:
        assert run.part(*story.before[-1]).left, "the last chunk is folded in one part"
    return run.state


def _changes(state: MemoryState, chunks: Sequence[Sequence[RawRecord]], settings: FoldSettings) -> Any:  # noqa: ANN401 - JSON
    """Return the changes of folding the chunks, on a copy of the state."""
    copy = MemoryState()
    copy.apply(state.data)
    changes = []
    for chunk in chunks:
        left = list(chunk)
        while left:
            result = fold_chunk(copy, left, CATALOG, settings)
            copy.apply(result.writes)
            changes += [plain(change) for change in result.changes]
            left = left[len(left) - result.left :]
    return changes


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


FORMATS = (
    Format(
        "states",
        ("stream_runtime/state/changelog.py", "materializer/rows/format_version.py"),
        make_states,
        read_states,
    ),
)
