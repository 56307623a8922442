"""How signals stop a job."""

from __future__ import annotations

import signal
import threading
from unittest.mock import MagicMock

import pytest

from stream_runtime.driver.stopping import stop_signals
from stream_runtime.query.streaming import StreamingWorkers

SECONDS = 10.0


@pytest.mark.timeout(20)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_within_a_call_of_the_event_stops_it(number: signal.Signals) -> None:
    """Within Event.wait, or Event.set of the signal before: `timeout` sends two."""
    stop, before = threading.Event(), signal.getsignal(number)
    with stop_signals(stop):
        with stop._cond:  # type: ignore[attr-defined]  # as these have it
            signal.raise_signal(number)
            signal.raise_signal(number)
        assert stop.wait(SECONDS)
    assert signal.getsignal(number) is before


def test_without_a_signal_it_goes_on() -> None:
    stop, threads = threading.Event(), threading.active_count()
    with stop_signals(stop):
        pass
    assert (stop.is_set(), threading.active_count()) == (False, threads)


def test_a_job_whose_jvm_got_the_signal_too_stops_cleanly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StreamingWorkers, "stop", MagicMock(side_effect=ConnectionRefusedError))
    workers = StreamingWorkers.__new__(StreamingWorkers)
    workers._context = MagicMock()
    with pytest.raises(ConnectionRefusedError), workers:
        workers._context._jsc.sc().isStopped.return_value = False
    with workers:
        workers._context._jsc.sc.side_effect = ConnectionRefusedError
