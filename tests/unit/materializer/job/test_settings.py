"""The fold's settings follow from the program's."""

from __future__ import annotations

from uuid import UUID

from materializer.processing.processor import fold_settings
from materializer.settings import MaterializerSettings

HOST = UUID(int=5)


def test_the_rules_are_the_settings_in_the_folds_units() -> None:
    settings = MaterializerSettings(
        reorder_seconds=1.5, purge_margin_seconds=7, stalled_publisher_seconds=900, forgotten_publishers=[HOST]
    )
    rules = fold_settings(settings)
    assert (rules.reorder_ms, rules.purge_margin_seconds, rules.stalled_publisher_ms) == (1500, 7, 900_000)
    assert rules.forgotten_publishers == {HOST.bytes}


def test_the_time_is_stored_before_anything_takes_the_stored_one_for_too_old() -> None:
    assert fold_settings(MaterializerSettings()).keep_time_ms == 600_000
    assert fold_settings(MaterializerSettings(stalled_publisher_seconds=60)).keep_time_ms == 30_000
