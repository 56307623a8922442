"""`topics import`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_common.settings.load import load_settings
from schematizer.settings import Settings
from schematizer.topic_files.importing.files import write_imported
from schematizer.topic_files.importing.gather import gather

if TYPE_CHECKING:
    from collections.abc import Iterable

_SECRETS = ("kafka", "registry")


def import_topics(root: Path, environments: Iterable[str], pattern: str, pii_prefix: str) -> None:
    """Write files of the topics of environments, each given as NAME=SETTINGS. CdcError if a server refuses."""
    try:
        re.compile(pattern)
    except re.error as error:
        raise click.BadParameter(f"{pattern!r}: {error}", param_hint="--topics") from error
    files = dict(_environment(text) for text in environments)
    gathered = {
        name: gather(load_settings(file, {}, secrets_of=_SECRETS).of(Settings), pattern, pii_prefix)
        for name, file in files.items()
    }
    broken = write_imported(root, gathered, files, pii_prefix, datetime.now(UTC).date())
    for name, found in gathered.items():
        for line in found.left_out:
            click.echo(f"left out of {name}: {line}", err=True)
    for line in broken:
        click.echo(f"to correct: {line}", err=True)
    topics = sum(len(found.topics) for found in gathered.values())
    click.echo(f"imported: {topics} topics into {root}; {len(broken)} findings of `topics check` are waived for a time")


def _environment(text: str) -> tuple[str, Path]:
    name, equals, file = text.partition("=")
    if not equals or not Path(file).is_file():
        raise click.BadParameter(f"{text!r} is not NAME=SETTINGS with a settings file", param_hint="ENVIRONMENT")
    return name, Path(file)
