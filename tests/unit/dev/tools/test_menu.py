"""make verify WHAT= and make bench NAME=: every program is there, and a wrong name gets the list."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess

import pytest

from dev.bench.__main__ import CHOICES as BENCHMARKS
from dev.local_stack.process.paths import project_root
from dev.tools.menu import Choice, flags, requirements, start
from dev.verify.__main__ import CHOICES as PROGRAMS


@pytest.mark.parametrize("choice", [*PROGRAMS, *BENCHMARKS], ids=lambda choice: choice.name)
def test_each_choice_names_a_module_that_is_there(choice: Choice) -> None:
    assert importlib.util.find_spec(choice.module) is not None
    assert choice.minutes.replace("-", "").isdigit()
    for argument in choice.arguments:
        assert not argument.endswith(".py") or (project_root() / argument).is_file()


def test_what_an_extra_requires_is_installed_and_not_this_project() -> None:
    extras = {choice.extra[0] for choice in [*PROGRAMS, *BENCHMARKS] if choice.extra is not None}
    assert extras == {"fuzz", "browser"}
    assert [name for name in requirements("fuzz") if name.startswith("atheris")] == requirements("fuzz")


def test_variables_become_flags() -> None:
    choice = next(choice for choice in PROGRAMS if choice.name == "model")
    given = {"SEEDS": "1", "STATEMENTS": "2000", "CLUSTER": "1", "VERSION": ""}
    assert flags(choice, given) == ["--statements", "2000", "--seeds", "1", "--cluster"]
    wide, state = (next(choice for choice in BENCHMARKS if choice.name == name) for name in ("wide", "state"))
    assert flags(wide, {"ROWS": "10 20"}) == ["10", "20"]
    assert flags(state, {"BENCH_ARGS": "--x 'a b'"}) == ["--x", "a b"]


def test_an_unknown_name_gets_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert start(PROGRAMS, "WHAT=", ["modle"]) == 2
    message = capsys.readouterr().err
    assert "WHAT=modle" in message
    assert all(choice.name in message for choice in PROGRAMS)


def test_make_help_lists_all_with_their_minutes() -> None:
    make = shutil.which("make")
    assert make is not None
    shown = subprocess.run([make, "help"], cwd=project_root(), capture_output=True, text=True, check=True).stdout
    for target, choices in (("WHAT=", PROGRAMS), ("NAME=", BENCHMARKS)):
        for choice in choices:
            [line] = [line for line in shown.splitlines() if line.split()[:1] == [f"{target}{choice.name}"]]
            assert f"{choice.minutes} min" in line
