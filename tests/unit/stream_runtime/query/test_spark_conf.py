"""The configuration with which the materializer starts Spark."""

from __future__ import annotations

import pytest

from cdc_common.errors.codes import CdcError, Code
from materializer.settings import MaterializerSettings
from stream_runtime.query.spark_conf import check_conf, session_options
from stream_runtime.query.spark_session import open_session


@pytest.mark.parametrize("is_submitted", [False, True])
def test_a_core_that_is_switched_off_is_off_in_the_workers(
    monkeypatch: pytest.MonkeyPatch,
    is_submitted: bool,  # noqa: FBT001  the parameter
) -> None:
    monkeypatch.setattr("stream_runtime.query.spark_conf.check_java", lambda: None)
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


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("spark.speculation", "true"),
        ("spark.python.worker.reuse", "false"),
        ("spark.python.use.daemon", "false"),
        ("spark.executor.pyspark.memory", "512m"),
    ],
)
def test_an_option_with_which_it_cannot_work_is_refused_by_name(option: str, value: str) -> None:
    with pytest.raises(CdcError, match=option) as caught:
        check_conf({"spark.app.name": "x", option: value})
    assert caught.value.code is Code.SPARK_SETTING
    assert option in caught.value.fix


def test_the_options_of_a_spark_that_is_started_here_are_not_refused() -> None:
    check_conf({"spark.speculation": "false", "spark.python.worker.reuse": "true", "spark.executor.cores": "4"})


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_spark_connect_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "sc://somewhere")
    with pytest.raises(CdcError, match="Spark Connect") as caught, open_session(MaterializerSettings()):
        raise AssertionError("a session was opened")
    assert caught.value.code is Code.SPARK_SETTING
    assert name in caught.value.fix


@pytest.mark.parametrize("master", ["local[2]", "local-cluster[2,2,1024]"])
def test_executors_may_have_any_number_of_cores(monkeypatch: pytest.MonkeyPatch, master: str) -> None:
    monkeypatch.setattr("stream_runtime.query.spark_conf.check_java", lambda: None)
    assert "spark.executor.cores" not in session_options(MaterializerSettings(spark_master=master))
