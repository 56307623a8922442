"""The walks in docs/internals/code.md name functions that exist, and hardly return to a room that they left."""

from __future__ import annotations

import importlib
import re

import pytest

from dev.local_stack.process.paths import project_root

STEP = re.compile(r"^(\d+)\. `([\w.]+):([\w.]+)`", re.MULTILINE)
LONGEST = 15
MOST_RETURNS = 2
PROGRAMS = ["publisher", "materializer", "transformer", "archive", "joinery", "warehouse"]
TWICE = ["warehouse"]  # from topics to a warehouse, and by objects and signals


def walks() -> list[list[tuple[str, str]]]:
    """The steps of each walk: module and name."""
    page = (project_root() / "docs" / "internals" / "code.md").read_text()
    found: list[list[tuple[str, str]]] = []
    for number, module, name in STEP.findall(page):
        if number == "1":
            found.append([])
        found[-1].append((module, name))
    return found


def returns(rooms: list[str]) -> list[str]:
    """The rooms that a walk enters again after it has left them."""
    entered = [room for at, room in enumerate(rooms) if at == 0 or rooms[at - 1] != room]
    return [room for at, room in enumerate(entered) if room in entered[:at]]


WALKS = walks()


def test_the_publisher_and_the_jobs_have_a_walk() -> None:
    found = [next(name for module, _ in walk if (name := module.split(".")[0]) in PROGRAMS) for walk in WALKS]
    assert found == [*PROGRAMS, *TWICE]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk[0][0])
def test_each_step_is_a_function_that_exists(walk: list[tuple[str, str]]) -> None:
    assert len(walk) <= LONGEST
    for module, name in walk:
        found: object = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found), (module, name)


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk[0][0])
def test_a_walk_hardly_returns_to_a_room_that_it_left(walk: list[tuple[str, str]]) -> None:
    rooms = [module.rpartition(".")[0] for module, _ in walk]
    assert len(returns(rooms)) <= MOST_RETURNS, returns(rooms)


def test_returns_are_counted() -> None:
    assert returns(["a", "a", "b", "a", "c", "b", "b"]) == ["a", "b"]
