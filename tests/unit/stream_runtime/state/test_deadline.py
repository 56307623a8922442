"""A call that hangs is given up as a checkpoint location that is away, which is waited for."""

from __future__ import annotations

import threading

import pytest

from cdc_common.errors.codes import CdcError, Code
from stream_runtime.state.deadline import within


def test_what_hangs_is_a_location_that_is_away() -> None:
    over = threading.Event()
    with pytest.raises(CdcError, match="storing it has taken longer than 0 s") as raised:
        within(0.05, lambda: over.wait() and None, "storing it")
    over.set()
    assert raised.value.code is Code.CHECKPOINT_LOCATION


def test_what_is_back_in_time_is_as_if_called_here() -> None:
    assert within(5, lambda: 7, "storing it") == 7

    def fail() -> None:
        raise CdcError(Code.STATE_DAMAGED, "It is torn.", "Mend it.")

    with pytest.raises(CdcError, match="It is torn"):
        within(5, fail, "storing it")


def test_a_thread_is_used_again_and_one_that_hangs_is_left_alone() -> None:
    within(5, threading.get_ident, "a call")
    first = within(5, threading.get_ident, "a call")
    over = threading.Event()
    with pytest.raises(CdcError):
        within(0.05, lambda: over.wait() and None, "a call")
    second = within(5, threading.get_ident, "a call")
    over.set()
    assert within(5, threading.get_ident, "a call") in (first, second)
    assert first != second


def test_a_timeout_of_the_call_itself_is_its_own() -> None:
    def fail() -> None:
        raise TimeoutError("by the server")

    with pytest.raises(TimeoutError, match="by the server"):
        within(5, fail, "a call")
