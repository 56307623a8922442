"""The checkpoint location of the settings."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from stream_runtime.state.object_store import ObjectStore

if TYPE_CHECKING:
    from materializer.settings import MaterializerSettings

_UPLOAD_SHARE = 0.75  # of a transaction's timeout


def object_store(settings: MaterializerSettings) -> ObjectStore:
    """The checkpoint location. One object a process, which counts the process's traffic."""
    return _object_store(settings.checkpoint_location, _storage_seconds(settings), settings.restore_reads)


@lru_cache(maxsize=4)
def _object_store(location: str, answer_seconds: float, reads: int) -> ObjectStore:
    return ObjectStore(location, answer_seconds, reads)


def _storage_seconds(settings: MaterializerSettings) -> float:
    """Return for how many seconds a worker waits for an answer of the checkpoint location."""
    return settings.transaction_timeout_seconds * _UPLOAD_SHARE
