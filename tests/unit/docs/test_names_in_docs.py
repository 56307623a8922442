"""Every setting, variable, metric, command, flag and make target that README.md and docs/ name is there.

Names are looked for in code spans and code blocks. `problems` has one finder for each kind of name.
"""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import cache
from typing import TYPE_CHECKING

import click
import pytest

from cdc_common.settings.describe import settings_of
from cdc_common.settings.tables import TABLES
from dev.bench.__main__ import CHOICES as BENCHMARKS
from dev.local_stack.process.paths import project_root
from dev.verify.__main__ import CHOICES as PROGRAMS
from tests.support.deploy.served import served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROOT = project_root()
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
SETTING = re.compile(rf"(?<![\w./=\[-])({'|'.join(TABLES)})\.([a-z]\w*)(?![\w(/.-])")
VARIABLE = re.compile(r"\bCDC_[A-Z]\w*[A-Z]\b")
NAMES = "publisher|filler|materializer|transformer|joinery|archive|warehouse|schematizer"
METRIC = re.compile(rf"\bcdc_(?:{NAMES})_\w+\*?|\bcdc_compiled\b")
TARGET = re.compile(r"^make(?: -s)? ([a-z]+)(.*)")
SCRIPTS: dict[str, str] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
COMMAND = re.compile(rf"^(?:\$ )?(?:[A-Z_]+=\S+ )*(?:[\w./-]*/)?({'|'.join(SCRIPTS)})(?![\w./-])(.*)")
FILES = {"cassandra.yaml", "registry.db"}


def code_of(text: str) -> list[str]:
    """Lines of code: of the blocks, those that end in a backslash joined, and the spans."""
    blocks = [block for _, _, block in BLOCK.findall(text)]
    spans = SPAN.findall(BLOCK.sub("", text))
    lines = [line.strip() for block in blocks for line in re.sub(r"\\\n", " ", block).splitlines()]
    return [*lines, *(" ".join(span.split()) for span in spans)]


@cache
def keys() -> dict[str, set[str]]:
    """The keys of each table of cdc.toml."""
    return {table: {known.key for known in settings_of(table)} for table in TABLES}


@cache
def sources() -> str:
    """The Python code of the packages, and of the tests' settings."""
    files = [file for package in ROOT.glob("*/__init__.py") for file in package.parent.rglob("*.py")]
    return "\n".join(file.read_text() for file in [*files, ROOT / "tests" / "conftest.py"])


@cache
def metrics() -> set[str]:
    """Names of the samples, and of their families."""
    return {name for sample in served() for name in (sample, re.sub(r"_(?:sum|count|bucket|created)$", "", sample))}


def unknown_settings(line: str) -> Iterator[str]:
    """`table.key`, unless it is a module or a file."""
    if re.match(r"(from|import) ", line):
        return  # a driver's module may have a table's name
    for table, key in SETTING.findall(line):
        is_module = any((ROOT / table / f"{key}{suffix}").exists() for suffix in ("", ".py"))
        if key not in keys()[table] and not is_module and f"{table}.{key}" not in FILES:
            yield f"{table}.{key}"


def unknown_keys(text: str) -> Iterator[str]:
    """Keys in blocks of TOML under a table of cdc.toml."""
    for _, language, block in BLOCK.findall(text):
        if language == "toml":
            for table, values in tomllib.loads(block).items():
                if table in keys() and isinstance(values, dict):
                    yield from (f"{table}.{key}" for key in values if key not in keys()[table])


def unknown_variables(line: str) -> Iterator[str]:
    known = {known.environment_name for table in TABLES for known in settings_of(table)}
    yield from (name for name in VARIABLE.findall(line) if name not in known and f'"{name}"' not in sources())


def unknown_metrics(line: str) -> Iterator[str]:
    for name in METRIC.findall(line):
        if not any(known == name or (name[-1] == "*" and known.startswith(name[:-1])) for known in metrics()):
            yield name


def unknown_commands(line: str) -> Iterator[str]:
    """A command line of a program of this project: its subcommands, and the flags of each."""
    if (found := COMMAND.match(line)) is None:
        return
    script, arguments = found.groups()
    command: click.Command = program(script)
    options = set(option_names(command))
    for word in re.split(r" [#|>&]|;", arguments)[0].replace("[", " ").replace("]", " ").split():
        if word.startswith("--"):
            if (flag := word.partition("=")[0]) not in options:
                yield f"{script} {command.name} {flag}"
        elif isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]+,?", word):
            if (subcommand := command.commands.get(word)) is None:
                yield f"{script} {word}"
                return
            command = subcommand
            options |= set(option_names(command))


@cache
def program(script: str) -> click.Group:
    values = vars(importlib.import_module(SCRIPTS[script].partition(":")[0])).values()
    return next(value for value in values if isinstance(value, click.Group) and value.name == script)


def option_names(command: click.Command) -> Iterator[str]:
    yield from ("--help", "--version")
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)


def unknown_targets(line: str) -> Iterator[str]:
    """`make TARGET WHAT=… NAME=…`."""
    if (found := TARGET.match(line)) is None:
        return
    target, variables = found.groups()
    if not re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE):
        yield f"make {target}"
    for variable, choices in (("WHAT", PROGRAMS), ("NAME", BENCHMARKS)):
        for name in re.findall(rf"\b{variable}=([\w-]+)", variables):
            if name not in {choice.name for choice in choices}:
                yield f"{variable}={name}"


FINDERS = (unknown_settings, unknown_variables, unknown_metrics, unknown_commands, unknown_targets)


def problems(text: str) -> list[str]:
    """Names of a page that are not there."""
    return [*(name for line in code_of(text) for find in FINDERS for name in find(line)), *unknown_keys(text)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_are_there(page: Path) -> None:
    assert problems(page.read_text()) == []


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("`kafka.topic_prefx` and `kafka.topic_prefix`", ["kafka.topic_prefx"]),
        ("`publisher.loop:Publisher`, `cassandra.yaml`", []),
        ("`CDC_KAFKA__PREFIX`, `CDC_KAFKA__TOPIC_PREFIX`, `CDC_NATIVE`", ["CDC_KAFKA__PREFIX"]),
        ("`cdc_filler_wrong`, `cdc_publisher_delivery_seconds`, `cdc_materializer_spark_*`", ["cdc_filler_wrong"]),
        ("`cassandra-materializer\nstate lst --json`", ["cassandra-materializer lst"]),
        ("```\n/opt/bin/cassandra-filler run \\\n --fast  # --slow\n```", ["cassandra-filler run --fast"]),
        ("`cassandra-publisher quarantine ls`, `--group cassandra-materializer --operation Read`", []),
        ("`make tests`, `make bench NAME=speed`, `make verify WHAT=model`", ["make tests", "NAME=speed"]),
        ("```toml\n[kafka]\ntopics = 3\n```", ["kafka.topics"]),
    ],
)
def test_wrong_names_are_found(text: str, wrong: list[str]) -> None:
    assert problems(text) == wrong


def test_pages_that_the_code_names_are_there() -> None:
    deployed = [file.read_text() for file in (ROOT / "deploy").rglob("*") if file.is_file()]
    named = set(re.findall(r"\bdocs/[\w/-]+\.md\b", "\n".join([sources(), *deployed])))
    assert "docs/guides/secure.md" in named
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


def test_pages_name_many() -> None:
    """So that a changed form of the pages does not hide them from the finders."""
    lines = [line for page in PAGES for line in code_of(page.read_text())]
    for pattern, least in ((SETTING, 200), (VARIABLE, 100), (METRIC, 20), (COMMAND, 100), (TARGET, 50)):
        assert sum(pattern.search(line) is not None for line in lines) > least
