"""The generated pages of the docs are those of the code, and complete."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import Code
from cdc_common.errors.explanation import MAX_LINES, WIDTH
from cdc_common.errors.reference import EXPLANATIONS
from dev.local_stack.process.paths import project_root
from dev.tools.reference import __main__ as command
from dev.tools.reference.busy_programs import registries
from dev.tools.reference.cli_page import EXAMPLE
from dev.tools.reference.metrics_page import unit
from dev.tools.reference.pages import PAGES
from dev.tools.reference.programs import commands, programs
from filler.cli import main as filler

if TYPE_CHECKING:
    from pathlib import Path

REFERENCE = project_root() / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    page = (project_root() / name).read_text()
    assert page == PAGES[name](page), "run: make docs-reference"


def test_the_command_finds_and_writes_what_is_out_of_date(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text("old")
    monkeypatch.setattr(command, "project_root", lambda: tmp_path)
    monkeypatch.setattr(command, "PAGES", {"page.md": lambda _: "new", "other.md": lambda _: "other"})
    assert (command.main(is_check=True), page.read_text()) == (1, "old")
    assert (command.main(is_check=False), page.read_text()) == (0, "new")
    assert command.main(is_check=True) == 0
    assert capsys.readouterr().out == "page.md\nother.md\n" * 2


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.name)
def test_each_code_is_explained_in_a_few_lines(code: Code) -> None:
    lines = EXPLANATIONS[code].lines()
    assert [line.split(":")[0] for line in lines if line.startswith("- ")] == [
        "- **Meaning**",
        "- **Cause**",
        "- **Fix**",
    ]
    assert len(lines) <= MAX_LINES
    assert max(map(len, lines)) <= WIDTH


def test_each_code_has_a_number_of_its_own() -> None:
    assert len({code.value[0] for code in Code}) == len(list(Code))
    assert Code.__members__.keys() == {code.name for code in Code}


def test_each_link_of_an_explanation_leads_somewhere() -> None:
    """The page exists, and has the section."""
    for page, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", (REFERENCE / "errors.md").read_text()):
        text = (REFERENCE / (page or "errors.md")).read_text()
        anchors = [
            re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-")
            for head in re.findall(r"^#+ (.+)$", text, re.MULTILINE)
        ]
        assert not anchor or anchor in anchors, f"{page}#{anchor}"


def test_explain_prints_a_code() -> None:
    done = CliRunner().invoke(filler, ["explain", "CDC-012", "cdc-7"])
    first, second = done.output.split("\n\n")
    assert first.startswith("CDC-012 CDC disabled on the node\nMeaning: ")
    assert "take a\n  snapshot (docs/guides/" in first
    assert second.startswith("CDC-007 Program not compiled\n")
    assert CliRunner().invoke(filler, ["explain"]).output.splitlines()[0] == "CDC-001  Unknown setting"
    refused = CliRunner().invoke(filler, ["explain", "CDC-999"])
    assert (refused.exit_code, "'CDC-999' is not a code such as CDC-012" in refused.output) == (2, True)


def test_each_metric_says_what_it_is() -> None:
    page = (REFERENCE / "metrics.md").read_text()
    for registry in registries().values():
        for family in registry.collect():
            assert family.documentation[:1].isupper() or family.documentation[:1].isdigit(), family.name
            assert f"| `{family.name}" in page or family.name.endswith("_created")


def test_units_are_those_of_the_names() -> None:
    names = (
        "a_bytes_total",
        "a_bytes_per_second",
        "a_seconds_left",
        "a_full_in_seconds",
        "a_done_ratio",
        "a_messages_total",
    )
    assert [unit(name) for name in names] == ["bytes", "bytes/s", "s", "s", "0 to 1", ""]


def test_each_command_has_its_section_and_says_what_it_does() -> None:
    """And its examples are of that command: test_commands_in_docs runs them."""
    page = (REFERENCE / "cli.md").read_text()
    for name, group in programs().items():
        for words, subcommand, _ in commands(name, group):
            assert subcommand.help, words
            for example in re.findall(rf"^{EXAMPLE}(.*)$", subcommand.help, re.MULTILINE):
                assert example.startswith(" ".join(words))
            if not isinstance(subcommand, click.Group):
                shared = words[1] in {"config", "explain"}
                assert f"### {' '.join(('PROGRAM', *words[1:]) if shared else words)}\n" in page
            for option in subcommand.params:
                assert not isinstance(option, click.Option) or option.help, (words, option.name)


def test_each_list_of_commands_has_whole_sentences() -> None:
    """The sentences fit a terminal of 80 columns; each says what the command does: Prints, Checks, Sends."""
    for name, group in programs().items():
        for words, subcommand, _ in commands(name, group):
            if isinstance(subcommand, click.Group):
                room = 80 - 6 - max(map(len, subcommand.commands))  # as click lays them out
                for child in subcommand.commands.values():
                    said = child.get_short_help_str(room)
                    assert not said.endswith("..."), (words, child.help)
                    assert re.match(r"[A-Z][a-z]+s,? ", said), (words, said)


def test_a_table_without_its_keyspace_is_a_mistake_of_the_command_line() -> None:
    """Each command that takes KEYSPACE.TABLE says so before it connects to anything."""
    found = 0
    for name, group in programs().items():
        for words, subcommand, _ in commands(name, group):
            arguments = [param for param in subcommand.params if isinstance(param, click.Argument)]
            if arguments and "KEYSPACE.TABLE" in (arguments[0].metavar or ""):
                result = CliRunner().invoke(group, [*words[1:], "orders", *("1" for _ in arguments[1:])])
                found += 1
                assert result.exit_code == 2, words
                assert "'orders' is not KEYSPACE.TABLE, as in shop.orders" in result.stderr, words
    assert found > 4
