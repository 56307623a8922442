"""Tests run on the compiled core unless CDC_NATIVE=0 says otherwise, and a program says which it runs on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

import cdc_native
from cdc_common.errors.codes import Code
from cdc_common.program.compiled import warn_if_not_compiled

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(cdc_native.__file__).parent


def test_a_checkout_is_compiled() -> None:
    assert cdc_native.is_compiled(), "`make install` compiles, and says what is missing; so does `pip install -v -e .`"


@pytest.mark.parametrize("source", sorted(PACKAGE.rglob("*.pyx")), ids=lambda path: path.stem)
def test_every_module_is_compiled(source: Path) -> None:
    assert list(source.parent.glob(f"{source.stem}.*.so"))


def test_the_variable_switches_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, is_enabled in (("0", False), ("1", True), ("", True)):
        monkeypatch.setenv("CDC_NATIVE", value)
        assert cdc_native.is_enabled() is is_enabled
        assert cdc_native.is_compiled()


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda patch: patch.setenv("CDC_NATIVE", "0"), "CDC_NATIVE=0 switches"),
        (lambda patch: patch.setattr(cdc_native, "is_compiled", lambda: False), "is not compiled"),
    ],
    ids=["off", "not compiled"],
)
def test_a_program_says_that_it_runs_without(
    monkeypatch: pytest.MonkeyPatch, prepare: Callable[[pytest.MonkeyPatch], None], reason: str
) -> None:
    prepare(monkeypatch)
    with capture_logs() as lines:
        warn_if_not_compiled()
    assert [line["code"] for line in lines] == [Code.NOT_COMPILED.text]
    assert reason in lines[0]["problem"]


def test_a_program_that_runs_with_it_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CDC_NATIVE", raising=False)
    with capture_logs() as lines:
        warn_if_not_compiled()
    assert lines == []
