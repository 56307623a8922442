"""Each command that the docs show exists, and is run: here, or by the test that runs.py names.

A page with a command that is new needs a line in tests/support/docs/runs.py.
"""

from __future__ import annotations

import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import create_autospec

import click
import pytest
from click.testing import CliRunner

from dev.bench.__main__ import CHOICES as BENCHES
from dev.local_stack.process.paths import project_root
from dev.tools.reference.programs import Command, commands, programs
from dev.verify.__main__ import CHOICES as VERIFIED
from tests.support.docs.runs import INSPECTORS, MAKE, OPERATORS, OTHERS, OWN, Run, Work
from tests.support.docs.shell import Shown, fenced, inline, pages

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = project_root()
KNOWN = {" ".join(command.words): command for name, group in programs().items() for command in commands(name, group)}
EXAMPLE = "docs/example-segment"
HERE = re.compile(r"(.* )?(--help|--version)|cassandra-\w+ (config (check|show)|explain)\b.*")


def shown(*, own: bool) -> list[Shown]:
    """Each command once: those of our programs, or all others."""
    found = {example.words: example for page, text in pages() for example in fenced(page, text)}
    return [example for example in found.values() if (example.words[0] in programs()) == own]


def named(example: Shown) -> str:
    return f"{example.page}: {example.text}"


OWN_SHOWN, OTHERS_SHOWN = shown(own=True), shown(own=False)


def command_of(words: Iterable[str]) -> tuple[Command, list[str]]:
    """The command and its arguments; AssertionError if the program has no such command."""
    name, *arguments = words
    while isinstance(KNOWN[name].command, click.Group):
        options = {option for parameter in KNOWN[name].command.params for option in parameter.opts}
        while arguments and arguments[0] in options:  # of the program, before the command; each has a value
            arguments = [*arguments[2:], *arguments[:2]]
        if not arguments or arguments[0].startswith("-"):
            break
        name = f"{name} {arguments.pop(0)}"
        assert name in KNOWN, f"there is no command {name}"
    return KNOWN[name], arguments


@pytest.mark.parametrize("example", OWN_SHOWN, ids=named)
def test_a_program_takes_it(example: Shown) -> None:
    """It has the subcommand, the options and as many arguments."""
    found, arguments = command_of(example.words)
    try:
        found.command.make_parser(found.context).parse_args(arguments)
    except click.UsageError as error:
        pytest.fail(error.format_message())


def test_commands_within_lines_exist() -> None:
    """Each subcommand and option; placeholders and left out arguments are as they may be."""
    wrong = []
    for example in (found for page, text in pages() for found in inline(page, text)):
        if example.words[0] not in programs():
            continue
        try:
            found, arguments = command_of(example.words)
        except AssertionError as error:
            wrong.append(f"{example.page}: {error}")
            continue
        options = {option for parameter in found.command.params for option in parameter.opts} | {"--help", "--version"}
        given = {word.partition("=")[0] for word in arguments if word.startswith("--") and word != "--"}
        wrong += [f"{named(example)}: no option {option}" for option in given - options]
    assert wrong == []


@pytest.mark.parametrize("example", OWN_SHOWN, ids=named)
def test_it_is_run(example: Shown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = command_of(example.words)
    name = " ".join(found.words)
    if HERE.fullmatch(example.text):
        run_here(example, tmp_path, monkeypatch)
    elif found.words[0] in {"cassandra-commitlog", "cassandra-sstable"}:
        if any(word.startswith(EXAMPLE) for word in example.words):
            monkeypatch.chdir(ROOT)
            result = CliRunner().invoke(programs()[example.words[0]], example.words[1:])
            assert (result.exit_code, bool(result.stdout)) == (0, True), result.output
        else:
            assert_tested(INSPECTORS[name])
    else:
        assert name in OWN, f"{named(example)}: tests/support/docs/runs.py does not say what runs it"
        assert_tested(OWN[name])
        run_up_to_the_work(example, OWN[name], tmp_path, monkeypatch)


def run_here(example: Shown, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Needs no server. The settings file is an empty one."""
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(programs()[example.words[0]], with_empty_settings(example, folder))
    assert (result.exit_code, bool(result.stdout)) == (0, True), result.output


def run_up_to_the_work(example: Shown, work: Work, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command with a function of the same signature in place of the one that needs servers. Files that it reads
    exist.
    """
    module, _, name = work.function.partition(":")
    function = getattr(import_module(module), name)
    done = create_autospec(function, return_value=0)
    monkeypatch.setattr(import_module(module), name, done)
    monkeypatch.chdir(folder)
    for word in example.words[1:]:
        file = Path(word)
        if not word.startswith("-") and not file.is_absolute() and not {":", "="} & set(word):
            if file.suffix:
                file.touch()
            else:
                file.mkdir(parents=True, exist_ok=True)
    arguments = with_empty_settings(example, folder)
    if "--database-url" not in arguments and example.words[0] == "cassandra-schematizer":
        (folder / "registry.db").touch()  # an empty database
        arguments += ["--set", f"schematizer.database_url=sqlite:///{folder}/registry.db"]
    result = CliRunner().invoke(programs()[example.words[0]], arguments)
    assert result.exit_code == 0, result.output
    done.assert_called_once()


def with_empty_settings(example: Shown, folder: Path) -> list[str]:
    (folder / "empty.toml").touch()
    arguments = list(example.words[1:])
    for index, word in enumerate(arguments[:-1]):
        if word == "--config":
            arguments[index + 1] = str(folder / "empty.toml")
    return arguments


def assert_tested(run: Run | Work) -> None:
    file = ROOT / run.test
    assert file.exists(), f"{run.test} does not exist any more"
    text = file.read_text()
    missing = [wanted for wanted in run.texts if wanted not in text]
    assert missing == [], f"{run.test} does not run it any more"


@pytest.mark.parametrize("example", OTHERS_SHOWN, ids=named)
def test_a_command_of_others_is_run_or_an_operators(example: Shown) -> None:
    if example.words[0] == "make":
        assert_make_takes(example)
        return
    begins = {" ".join(example.words[:count]) for count in (1, 2, 3)}
    known = begins & (OTHERS.keys() | OPERATORS.keys())
    assert known, f"{named(example)}: tests/support/docs/runs.py does not say what runs it, or why no test can"
    for begin in known & OTHERS.keys():
        assert_tested(OTHERS[begin])


def assert_make_takes(example: Shown) -> None:
    """The target exists, the program that WHAT or NAME chooses, too; runs.py says what runs the target."""
    targets = [word for word in example.words[1:] if "=" not in word and not word.startswith("-")]
    variables = dict(word.split("=", 1) for word in example.words[1:] if "=" in word)
    assert set(targets) <= set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(targets) <= MAKE.keys(), f"{named(example)}: tests/support/docs/runs.py does not say what runs it"
    if "verify" in targets:
        assert variables["WHAT"] in {choice.name for choice in VERIFIED}
    if "bench" in targets:
        assert variables["NAME"] in {choice.name for choice in BENCHES}
    for target in targets:
        run = MAKE[target]
        if isinstance(run, Run):
            assert_tested(run)


@pytest.mark.parametrize("name", [*OWN, *INSPECTORS])
def test_the_table_is_of_commands_and_tests_that_exist(name: str) -> None:
    assert name in KNOWN
    assert_tested(OWN.get(name) or INSPECTORS[name])


def test_each_command_of_the_programs_is_in_the_table() -> None:
    """So that a new command gets its test, and its line, before a page shows it."""
    own = {name for name, command in KNOWN.items() if not isinstance(command.command, click.Group)}
    own -= {name for name in own if HERE.fullmatch(name)}
    assert own == OWN.keys() | INSPECTORS.keys()


def test_what_it_would_find() -> None:
    """A command that does not exist, an option that does not, and all forms of a block."""
    text = """
```sh
sudo A=1 cassandra-publisher run \\
    --config /etc/cdc.toml | tee log && make demo > out  # and
cat > file <<'EOF'
cassandra-publisher nothing
EOF
```

```
$ ls
cassandra-filler run
output of cassandra-filler run
```
"""
    found = [example.text for example in fenced("page", text)]
    assert found == [
        "cassandra-publisher run --config /etc/cdc.toml",
        "tee log",
        "make demo",
        "cat",
        "ls",
        "cassandra-filler run",
    ]
    with pytest.raises(AssertionError, match="no command cassandra-publisher nothing"):
        command_of(["cassandra-publisher", "nothing"])
    with pytest.raises(pytest.fail.Exception, match="No such option"):
        test_a_program_takes_it(Shown("page", ("cassandra-publisher", "--log-level", "info", "run", "--nothing")))
    assert [example.text for example in inline("page", "`cassandra-publisher status --json` `other`")] == [
        shlex.join(["cassandra-publisher", "status", "--json"])
    ]
