"""What the materializer asks of Spark."""

from __future__ import annotations

import pytest

from cdc_program.settings import MaterializerSettings
from materializer.job.spark_conf import session_options


@pytest.mark.parametrize("is_submitted", [False, True])
def test_a_core_that_is_switched_off_is_off_in_the_workers(
    monkeypatch: pytest.MonkeyPatch,
    is_submitted: bool,  # noqa: FBT001  the parameter
) -> None:
    monkeypatch.setattr("materializer.job.spark_conf.check_java", lambda: None)
    if is_submitted:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.delenv("CDC_NATIVE", raising=False)
    assert "spark.executorEnv.CDC_NATIVE" not in session_options(MaterializerSettings())
    monkeypatch.setenv("CDC_NATIVE", "0")
    assert session_options(MaterializerSettings())["spark.executorEnv.CDC_NATIVE"] == "0"


def test_workers_have_few_heaps_unless_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MALLOC_ARENA_MAX", raising=False)
    assert session_options(MaterializerSettings())["spark.executorEnv.MALLOC_ARENA_MAX"] == "2"
    monkeypatch.setenv("MALLOC_ARENA_MAX", "8")
    assert session_options(MaterializerSettings())["spark.executorEnv.MALLOC_ARENA_MAX"] == "8"
