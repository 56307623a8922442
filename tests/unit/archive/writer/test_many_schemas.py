"""Producers of several schemas write by turns: a cut has one file for each schema, not for each switch."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from archive.events.verify import LedgerCheck
from tests.support.archive.scene import ENVELOPE, NOW_MS, Archive, MemoryRegistry, Topic

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = 600


def test_schemas_that_alternate_have_one_file_each(tmp_path: Path) -> None:
    wider: Any = copy.deepcopy(ENVELOPE)
    wider["fields"][1]["type"][1]["fields"].append({"name": "city", "type": ["null", "string"], "default": None})
    topic = Topic(2, MemoryRegistry({7: ENVELOPE, 8: wider}))
    for number in range(MESSAGES):
        after = {"id": number, "name": "Ada", "city": "Paris"}
        source = {"ts_us": NOW_MS * 1000, "row_sequence": number}
        change = {"op": "c", "before": None, "after": after, "source": source, "ts_ms": NOW_MS}
        topic.send(number % 2, topic.encode(7 + number // 2 % 2, change))
    archive = Archive(topic, tmp_path)
    archive.cut(rows=MESSAGES)
    archive.run()
    [event] = archive.events()
    assert sorted((file.planned.schema_id, file.rows) for file in event.files) == [
        (7, MESSAGES // 2),
        (8, MESSAGES // 2),
    ]
    assert LedgerCheck(archive.store, read_rows=True).check([event]).problems == []
