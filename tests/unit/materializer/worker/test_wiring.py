"""The files and clients of a raw partition are closed again if the rest cannot be opened."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.records import RawPartition
from materializer.settings import Settings
from materializer.worker import wiring
from materializer.worker.batch_plan import BatchPlan
from stream_runtime.kafka import commits
from stream_runtime.state.rocksdb import open_local_store
from stream_runtime.worker import open_resources

if TYPE_CHECKING:
    from pathlib import Path


def test_a_slot_is_free_while_the_checkpoint_location_is_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = Settings()
    settings = defaults.materializer.model_copy(update={"state_directory": tmp_path})
    raw_partition = RawPartition("raw", 0)
    away = CdcError(Code.CHECKPOINT_LOCATION, "It does not answer.", "Make it answer.")
    monkeypatch.setattr(wiring, "_positions", Mock())
    monkeypatch.setattr(commits, "FencingProducer", Mock())
    monkeypatch.setattr(open_resources, "object_store", Mock(side_effect=away))
    for _ in range(20):
        with pytest.raises(CdcError, match="does not answer"):
            wiring.open_resources(BatchPlan({}, defaults.kafka, settings), raw_partition)
    open_local_store(open_resources.state_folder(settings) / str(raw_partition)).close()
