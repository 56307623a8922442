"""The order in which programs move to another release, and what happens to one that refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.servers.programs import CHECKOUT, Release
from dev.verify.upgrade import rolling
from dev.verify.upgrade.releases import default_source
from dev.verify.upgrade.rolling import Roller
from dev.verify.upgrade.workload import Features, features_of, tables_of

if TYPE_CHECKING:
    from dev.local_stack.servers.stack import Stack

OLD = Release("old-python", None)


class FakeProgram:
    """Refuses a release with an error, at its start or some time after it."""

    def __init__(self, name: str, log: list[str], says: str = "", *, ends: bool = False) -> None:
        self.name = name
        self.release = CHECKOUT
        self._log = log
        self._says = says
        self._ends = ends

    def stop(self) -> None:
        self._log.append(f"-{self.name}")

    def start(self) -> None:
        self._log.append(f"+{self.name}")
        if self._ends and self.release is OLD:
            raise CdcError(Code.SERVER_FAILED, "it has ended", "")

    def output(self) -> str:
        return self._says if self.release is OLD else "ready"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rolling, "LOAD_SECONDS", 0.0)
    monkeypatch.setattr(rolling, "REFUSE_SECONDS", 0.0)


def roller(log: list[str], materializer: FakeProgram) -> Roller:
    stack = SimpleNamespace(
        schematizer=FakeProgram("registry", log),
        materializer=materializer,
        publishers=[FakeProgram("publisher-1", log), FakeProgram("publisher-2", log)],
        fillers=[FakeProgram("filler", log)],
        check=lambda: None,
    )
    return Roller(cast("Stack", stack), log.append)


def moves(log: list[str]) -> list[str]:
    return [line for line in log if line[0] in "+-"]


def test_readers_move_before_writers_and_go_back_after_them() -> None:
    log: list[str] = []
    both = roller(log, FakeProgram("materializer", log))
    assert all(step.refused is None for step in both.upgrade(OLD))
    order = ["registry", "materializer", "publisher-1", "publisher-2", "filler"]
    assert moves(log) == [f"{sign}{name}" for name in order for sign in "-+"]
    log.clear()
    both.roll_back(CHECKOUT)
    back = ["filler", "publisher-1", "publisher-2", "materializer", "registry"]
    assert moves(log) == [f"{sign}{name}" for name in back for sign in "-+"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_program_that_refuses_a_newer_format_stays(ends: bool) -> None:  # noqa: FBT001 - a parameter of a test
    log: list[str] = []
    materializer = FakeProgram("materializer", log, "CDC-053 newer", ends=ends)
    steps = {step.program: step.refused for step in roller(log, materializer).roll_back(OLD)}
    assert steps["materializer"] == Code.STATE_FORMAT.text
    assert [name for name, refused in steps.items() if refused] == ["materializer"]
    assert materializer.release is CHECKOUT
    assert moves(log)[-6:-2] == ["-materializer", "+materializer"] * 2


def test_any_other_end_is_an_error() -> None:
    log: list[str] = []
    with pytest.raises(CdcError, match="it has ended"):
        roller(log, FakeProgram("materializer", log, "CDC-099", ends=True)).roll_back(OLD)


def test_without_a_wheel_the_default_is_a_commit_with_other_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dev.verify.upgrade.releases.OUT", SimpleNamespace(glob=lambda _: []))
    assert default_source().endswith(("^", "HEAD~1"))


def test_an_older_release_gets_only_what_it_has_messages_for() -> None:
    known = {"materializer.truncate_seconds", "publisher.drop_seconds", "publisher.snapshot"}
    assert features_of(CHECKOUT) == Features(truncate_and_drop=True, snapshots=True)
    assert features_of(OLD._replace(settings=frozenset(known))) == features_of(CHECKOUT)
    assert features_of(OLD._replace(settings=frozenset(known - {"publisher.snapshot"}))) == Features(True, False)
    oldest = features_of(OLD._replace(settings=frozenset()))
    assert oldest == Features(truncate_and_drop=False, snapshots=False)
    lacking = {table.name for table in tables_of(features_of(CHECKOUT))} - {table.name for table in tables_of(oldest)}
    assert lacking == {"again", "earlier0", "earlier1", "earlier2"}
