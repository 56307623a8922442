"""`topics init`, `new`, `json-schemas` and `check`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cdc_common.errors.codes import CdcError, Code
from schematizer.topic_files.files.json_schemas import write_json_schemas
from schematizer.topic_files.files.new import new_repository, new_topic
from schematizer.topic_files.files.reading import read_repository
from schematizer.topic_files.rules.check import check_repository
from schematizer.topic_files.rules.reports import as_junit, as_sarif, as_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def init(folder: Path) -> None:
    """Write a first catalogue.toml. CdcError TOPIC_FILES if there is one."""
    _print_written([new_repository(folder)])


def new(root: Path, place: str, typology: str, owner: str) -> None:
    """Write the files of a topic. CdcError TOPIC_FILES if they cannot be there."""
    _print_written(new_topic(root, place, typology, owner))


def json_schemas(folder: Path) -> None:
    """Write the JSON Schemas of the files."""
    _print_written(write_json_schemas(folder))


def check(root: Path, sarif: Path | None, junit: Path | None) -> None:
    """Check a repository's files. CdcError TOPIC_FILES if a rule is broken."""
    checked = check_repository(read_repository(root), datetime.now(UTC).date())
    for line in as_text(checked):
        click.echo(line, err=True)
    for path, make in ((sarif, as_sarif), (junit, as_junit)):
        if path is not None:
            path.write_text(make(checked), encoding="utf-8")
    if checked.findings:
        raise CdcError(
            Code.TOPIC_FILES,
            f"{len(checked.findings)} findings in {checked.topics} topics.",
            "Correct the files as listed, or waive a rule for a time in the topic file.",
        )
    click.echo(f"ok: {checked.topics} topics, {len(checked.waived)} findings waived")


def _print_written(paths: Iterable[Path]) -> None:
    for path in paths:
        click.echo(f"written: {path}")
