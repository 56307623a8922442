"""commit-log-format.md says what the code does: its tables of constants, and its mutation taken apart."""

from __future__ import annotations

import json
import re

import pytest

from cassandra_storage.files.schema_file import read_schema_file
from cassandra_storage.formats.rows import cells, partition_update, unfiltered
from cassandra_storage.formats.rows.clustering import Kind
from cassandra_storage.formats.types import marshal
from cassandra_storage.formats.types.marshal import NativeType
from cassandra_storage.formats.types.serializers import NATIVE_DECODERS
from cassandra_storage.formats.versions import commit_log_format
from dev.local_stack.process.paths import project_root
from tests.support.cassandra_storage.commitlog.fixtures import commitlog, json_lines

EXAMPLE = project_root() / "docs" / "example-segment"
PAGE = (project_root() / "docs" / "reference" / "commit-log-format.md").read_text()


def rows(*header: str) -> list[list[str]]:
    """The cells of the first table with this header."""
    lines = iter(PAGE.splitlines())
    wanted = "| " + " | ".join(header) + " |"
    assert wanted in PAGE.splitlines(), wanted
    for line in lines:
        if line == wanted:
            break
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def tables(heading: str) -> str:
    """The text of one section of the page."""
    _, _, text = PAGE.partition(f"\n{heading}")
    assert text, heading
    return re.split(r"\n#+ ", text, maxsplit=1)[0]


def test_versions() -> None:
    found = rows("commit log version", "written by", "messaging version of its mutations", "comes to `cdc_raw`")
    assert [row[0] for row in found] == ["6", "7", "8"]
    for version, written_by, messaging_version, _ in found:
        known = commit_log_format(int(version))
        assert written_by == f"Cassandra {known.written_by}"
        assert int(messaging_version) == known.messaging_version


@pytest.mark.parametrize(
    ("heading", "module"),
    [("## Partition update", partition_update), ("## Row:", unfiltered), ("## Cells", cells)],
)
def test_flags(heading: str, module: object) -> None:
    """The names are Cassandra's; ours are the same, but private, and without those that nothing asks for."""
    flags = {
        name: int(number, 16)
        for number, name in re.findall(r"^\| ([0-9a-f]{2}) \| ([A-Z_]+)", tables(heading), re.MULTILINE)
    }
    assert len(flags) >= 5
    ours = {
        name.lstrip("_"): value for name, value in vars(module).items() if re.fullmatch("_?(IS|HAS|USE)_[A-Z_]+", name)
    }
    shared = {name: value for name, value in flags.items() if name in ours}
    assert len(shared) >= 4
    assert shared == {name: ours[name] for name in shared}


def test_kinds_of_bounds() -> None:
    found = re.findall(r"^\| (\d) \| ([A-Z_]+)", tables("### Bounds"), re.MULTILINE)
    assert {int(number): name for number, name in found} == {kind.value: kind.name for kind in Kind}


def test_types_of_fixed_length() -> None:
    found = {name: int(size) for name, size in re.findall(r"^\| (\w+) \| (\d+) \|$", tables("## Values"), re.MULTILINE)}
    lengths = {name: marshal.fixed_length(NativeType(name)) for name in NATIVE_DECODERS}
    assert found == {name: length for name, length in lengths.items() if length is not None}


def test_the_mutation_taken_apart() -> None:
    """The bytes of the page are those of the example, and its JSON is what they say."""
    section = tables("## A mutation, byte by byte")
    shown = bytes.fromhex("".join(re.findall(r"^\| `([0-9a-f ]+)` \|", section, re.MULTILINE)))
    (_, _, text) = section.partition("```json\n")
    expected = json.loads(text.partition("```")[0])
    end = expected["position"]
    assert (EXAMPLE / expected["segment"]).read_bytes()[end - len(shown) : end] == shown
    assert json_lines(commitlog("dump", "--values", "--from", end, "--to", end, EXAMPLE)) == [expected]


def test_the_readme() -> None:
    """Its commands work, and the line that it shows is what they print."""
    readme = (project_root() / "README.md").read_text()
    commands = re.findall(r"^cassandra-commitlog (.+)$", readme, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["info", "verify", "dump"]
    output = "".join(
        commitlog(*command.replace("docs/example-segment", str(EXAMPLE)).split()).stdout for command in commands
    )
    (shown,) = re.findall(r'^\{"segment".+$', readme, re.MULTILINE)
    assert shown in output.splitlines()
    assert "380 mutations decoded, 0 of unknown tables or columns, 0 problems" in output


def test_the_schema_file_of_the_example() -> None:
    assert len(read_schema_file(EXAMPLE / "schema.json")) >= 9
