"""Rates and lags from offsets, and the sampler with a Kafka that fails."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from schematizer.measures import sampler as sampler_module
from schematizer.measures.measured import Measured, Sample, measured
from schematizer.measures.offsets import OffsetsError
from schematizer.measures.sampler import NoMeasures, Sampler

if TYPE_CHECKING:
    from collections.abc import Collection

    import pytest

A0, A1, B0 = ("a", 0), ("a", 1), ("b", 0)


def test_rates_and_lags() -> None:
    first = Sample(100.0, {A0: 10, A1: 20, B0: 500})
    last = Sample(110.0, {A0: 60, A1: 70, B0: 3}, {"g": {A0: 55, A1: 80}, "h": {B0: 1}})
    assert measured(None, first) == {"a": Measured(2, None, {}), "b": Measured(1, None, {})}
    # b was made again: its end went back. g has read more of a/1 than there was when its end was asked.
    assert measured(first, last) == {"a": Measured(2, 10.0, {"g": 5}), "b": Measured(1, 0.0, {"h": 2})}


class Kafka:
    """Answers with what it is given."""

    def __init__(self) -> None:
        self.error: str | None = None
        self.end = 0
        self.asked: list[Collection[str]] = []

    def sample(self, topics: Collection[str]) -> Sample:
        self.asked.append(topics)
        if self.error:
            raise OffsetsError(self.error)
        self.end += 10
        return Sample(monotonic(), {A0: self.end})


def test_what_was_measured_last_is_shown_until_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = Kafka()
    sampler = Sampler(kafka, lambda: ["a"], 1.0)
    assert (sampler.of("a"), sampler.problem) == (None, "Nothing has been measured yet.")
    sampler.measure()
    assert (sampler.of("a"), sampler.of("z"), sampler.problem) == (Measured(1, None, {}), None, None)
    sampler.measure()
    found = sampler.of("a")
    assert found is not None
    assert found.rate is not None
    assert found.rate > 0
    kafka.error = "Local: Broker transport failure"
    sampler.measure()
    assert sampler.of("a") == found
    assert sampler.problem == "Kafka does not answer: Local: Broker transport failure"
    monkeypatch.setattr(sampler_module, "monotonic", lambda: monotonic() + 60)
    assert sampler.of("a") is None
    kafka.error = None
    sampler.measure()
    assert sampler.problem == "The last measurement is too old."
    assert kafka.asked == [["a"]] * 4


def test_the_thread_measures_and_survives_an_error() -> None:
    kafka = Kafka()
    answers = iter([RuntimeError("unforeseen")])

    def topics() -> list[str]:
        error = next(answers, None)
        if error is not None:
            raise error
        return ["a"]

    with Sampler(kafka, topics, 0.01) as sampler:
        deadline = monotonic() + 30
        while sampler.of("a") is None:
            assert monotonic() < deadline, sampler.problem


def test_without_kafka_it_is_said() -> None:
    assert NoMeasures().of("a") is None
    assert "kafka.bootstrap_servers" in NoMeasures().problem
