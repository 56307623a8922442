"""The command cassandra-sstable, called in the test's process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner

from cassandra_storage.commands.sstable.cli import group

if TYPE_CHECKING:
    from click.testing import Result


def sstable(*arguments: object, status: int = 0) -> Result:
    """Call it with these arguments; its exit status must be `status`."""
    result = CliRunner().invoke(group, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


def lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]
