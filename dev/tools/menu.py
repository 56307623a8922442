"""Programs to choose by name: what `make verify WHAT=` and `make bench NAME=` can start, and how long each takes.

Runs on the standard library alone, so that `make help` works before anything is installed.
"""

from __future__ import annotations

import importlib.util
import os
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Choice(NamedTuple):
    """One program."""

    # The name by which it is chosen.
    name: str
    # The module that runs.
    module: str
    # The time that it takes on two cores, in words.
    minutes: str
    # What it does, in words.
    what: str
    # The environment variables that become flags, each with its flag. Make passes them on. A flag that ends in "=1"
    # stands alone.
    variables: tuple[tuple[str, str], ...] = ()
    # The arguments that the module always gets.
    arguments: tuple[str, ...] = ()
    # (variable of the program, variable given by the user, default).
    environment: tuple[tuple[str, str, str], ...] = ()
    # An extra of this distribution whose requirements are installed first, and a module that shows whether they are
    # there; None for no extra.
    extra: tuple[str, str] | None = None


def start(choices: Sequence[Choice], target: str, arguments: Sequence[str]) -> int:
    """Run the program that the first argument names, or list all; 2 for a name that is unknown."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(listing(choices, target))
        return 0
    name, *more = arguments
    chosen = next((choice for choice in choices if choice.name == name), None)
    if chosen is None:
        known = ", ".join(choice.name for choice in choices)
        sys.stderr.write(f"There is no {target}{name}. Choose one of: {known}.\n")
        return 2
    if chosen.extra is not None:
        _install(*chosen.extra)
    for variable, given, default in chosen.environment:
        os.environ[variable] = os.environ.get(given, default)
    sys.argv = [chosen.module, *chosen.arguments, *flags(chosen, os.environ), *more]
    runpy.run_module(chosen.module, run_name="__main__", alter_sys=True)
    return 0


def flags(choice: Choice, environment: Mapping[str, str]) -> list[str]:
    """The flags that the environment's variables ask for."""
    found: list[str] = []
    for variable, flag in choice.variables:
        value = environment.get(variable, "")
        if not value:
            continue
        if not flag:
            found += shlex.split(value)
        else:
            found += [flag.removesuffix("=1")] if flag.endswith("=1") else [flag, value]
    return found


def listing(choices: Sequence[Choice], target: str) -> str:
    """One line for each choice."""
    width = max(len(choice.name) for choice in choices)
    lines = []
    for choice in choices:
        names = [variable for variable, _ in choice.variables] + [given for _, given, _ in choice.environment]
        variables = f" ({' '.join(names)})" if names else ""
        lines.append(f"    {target}{choice.name:<{width}}  {choice.minutes:>7} min  {choice.what}{variables}\n")
    return "".join(lines)


def _install(extra: str, module: str) -> None:
    """Install only what the extra requires. The environment's own installation of this project does not change."""
    if importlib.util.find_spec(module) is None:
        command = [sys.executable, "-m", "pip", "install", "--quiet", *requirements(extra)]
        subprocess.run(command, check=True)


def requirements(extra: str) -> list[str]:
    """Return the requirements that pyproject.toml lists under an extra."""
    with (Path(__file__).parents[2] / "pyproject.toml").open("rb") as file:
        listed: list[str] = tomllib.load(file)["project"]["optional-dependencies"][extra]
    return listed
