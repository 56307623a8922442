"""`cassandra-archive check`: whether the settings, the location and the catalogs can be used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archive.job.run import check_archive

if TYPE_CHECKING:
    from archive.settings import Settings


def print_check(settings: Settings) -> None:
    """Print how many topics would be archived. CdcError for what cannot be used."""
    click.echo(f"ok: {len(check_archive(settings)):,} topics")
