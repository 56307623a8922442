"""`import`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.errors.codes import CdcError, Code
from schematizer.importing.copy import copy, differences
from schematizer.importing.source import SourceRegistry
from schematizer.model.database import opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from schematizer.importing.compare import Differences
    from schematizer.importing.source import Content
    from schematizer.settings import Settings

_SHOWN = 20


def import_registry(settings: Settings, url: str, *, is_dry_run: bool, skips_unsupported: bool) -> None:
    """Copy the registry at `url` into the database, and compare both again. CdcError IMPORT if both differ afterwards,
    and before anything is written if something there cannot be kept or is something else here.
    """
    there = settings.registry.model_copy(update={"url": url})
    with SourceRegistry(there) as source, opened(settings.schematizer.database_url) as database:
        content = source.read()
        found = differences(database, content)
        _report(content, found)
        _check(content, found, skips_unsupported=skips_unsupported)
        if is_dry_run:
            return
        copy(database, found, settings.schematizer.pii_topic_prefix)
        after = differences(database, source.read())
    if not after.are_none:
        raise CdcError(
            Code.IMPORT,
            f"The other registry has changed while it was copied: {_summary(after)}.",
            "Set its mode to READONLY, and run the same command again: it copies the rest.",
        )
    click.echo(f"equal: {len(content.versions)} versions, their ids, deletions and settings")


def _report(content: Content, found: Differences) -> None:
    subjects = {version.subject for version in content.versions}
    click.echo(f"there: {len(content.versions)} versions of {len(subjects)} subjects")
    click.echo(f"to copy: {_summary(found)}")
    if found.only_here:
        click.echo(f"only here: {found.only_here} versions, which stay")


def _summary(found: Differences) -> str:
    return f"{len(found.missing)} versions, {len(found.flags)} deletions, {len(found.settings)} settings"


def _check(content: Content, found: Differences, *, skips_unsupported: bool) -> None:
    _show(found.conflicts)
    _show(content.refused)
    if found.conflicts:
        raise CdcError(
            Code.IMPORT,
            f"{len(found.conflicts)} ids or versions have other schemas here.",
            "Import into the database of a registry in which nothing was registered yet.",
        )
    if content.refused and not skips_unsupported:
        raise CdcError(
            Code.IMPORT,
            f"{len(content.refused)} things of the other registry cannot be kept here.",
            "Add --skip-unsupported to copy all others.",
        )


def _show(sentences: Sequence[str]) -> None:
    for sentence in sentences[:_SHOWN]:
        click.echo(sentence, err=True)
    if len(sentences) > _SHOWN:
        click.echo(f"… and {len(sentences) - _SHOWN} more", err=True)
