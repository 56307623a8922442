"""A task goes to Spark's processes without the settings, which hold secrets."""

from __future__ import annotations

import pickle

import pytest
from pydantic import SecretStr

from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.settings import KafkaSettings
from materializer.planning.plan import TableSchema, TopicPlan
from materializer.settings import Settings
from materializer.worker.batch_plan import BatchPlan
from materializer.worker.worker_loop import BatchTask
from stream_runtime.query.task_pickle import dumps, loads

SECRET = "the-password"


def plan() -> BatchPlan:
    settings = Settings()
    kafka = KafkaSettings(sasl_password=SecretStr(SECRET))
    topic = TopicPlan(1, (TableSchema(b"i" * 16, b"d" * 16, b"{}"),), (None,), forms=EXACT)
    return BatchPlan({"t": topic}, kafka, settings.materializer)


def test_settings_are_left_out_and_put_in_again() -> None:
    sent = plan()
    assert SECRET.encode() in pickle.dumps(BatchTask(sent))
    known = (sent.kafka, sent.materializer)
    pickled = dumps(BatchTask(sent), known)
    assert SECRET.encode() not in pickled
    found = loads(pickled, known)._plan
    assert found == sent
    assert found.kafka is sent.kafka


def test_the_same_task_is_the_same_bytes() -> None:
    """The driver sends a task to a process only if it differs."""
    sent = plan()
    known = (sent.kafka, sent.materializer)
    again = BatchPlan(dict(sent.topics), sent.kafka, sent.materializer)
    assert dumps(BatchTask(sent), known) == dumps(BatchTask(again), known)


def test_a_task_of_other_settings_is_not_read() -> None:
    sent = plan()
    with pytest.raises(IndexError):
        loads(dumps(BatchTask(sent), (sent.kafka, sent.materializer)), ())
