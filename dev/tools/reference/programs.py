"""The console scripts of pyproject.toml, as click has them."""

from __future__ import annotations

import tomllib
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

import click

from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator


class Command(NamedTuple):
    """A command of a program."""

    # The program and its subcommands, as typed.
    words: tuple[str, ...]
    # The command of click.
    command: click.Command
    # Click's context, for usage and metavars.
    context: click.Context


def programs() -> dict[str, click.Group]:
    """Return the programs by name. Each module has its group as `main`, or as `group` if `main` is a function around
    it.
    """
    file = project_root() / "pyproject.toml"
    found = {}
    for name, place in tomllib.loads(file.read_text())["project"]["scripts"].items():
        module = import_module(place.partition(":")[0])
        group = module.main if isinstance(module.main, click.Group) else module.group
        assert isinstance(group, click.Group)
        found[name] = group
    return found


def commands(name: str, group: click.Group) -> Iterator[Command]:
    """The program itself, then each of its commands and groups of commands, in the order of their definition."""
    yield from _walk((name,), group, click.Context(group, info_name=name))


def _walk(words: tuple[str, ...], command: click.Command, context: click.Context) -> Iterator[Command]:
    yield Command(words, command, context)
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from _walk((*words, name), child, click.Context(child, info_name=name, parent=context))
