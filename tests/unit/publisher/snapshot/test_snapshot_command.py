"""The command that asks for a snapshot, where another one runs on this node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.token_ranges import Span
from cdc_program.errors import CdcError, Code
from cdc_program.settings import PublisherSettings, Settings
from cdc_program.snapshot_rows import RepairRequest
from publisher.snapshot.command import Options, request_snapshot
from publisher.snapshot.portion import Portion
from publisher.snapshot.records import Records, new_record
from tests.support.materializer.table_writes import MIXED

if TYPE_CHECKING:
    from pathlib import Path

NAME = MIXED.table.qualified_name
KEY = b"what the row is about"


REPAIR = Portion(repair=RepairRequest(2**52, (KEY,)))


@pytest.mark.parametrize(
    ("running", "tokens", "says"),
    [
        (REPAIR, (), "A repair of 1 Cassandra partitions"),
        (REPAIR, ("1:5",), "A repair of 1 Cassandra partitions"),
        (Portion((Span(7, 9),)), ("1:5",), "another part"),
    ],
)
def test_another_one_is_not_taken_for_what_was_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], running: Portion, tokens: tuple[str, ...], says: str
) -> None:
    records = Records(tmp_path)
    records.make_folder()
    records.begin(new_record(MIXED.table, portion=running))
    settings = Settings(publisher=PublisherSettings.model_validate({"state_directory": tmp_path}))
    options = Options(snapshot=None, tokens=tokens, primary_range=False, detach=True)
    with pytest.raises(CdcError, match=says) as refused:
        request_snapshot(settings, NAME, options, print)
    assert refused.value.code is Code.CONFIG_INVALID
    assert KEY.hex() not in str(refused.value) + capsys.readouterr().out
