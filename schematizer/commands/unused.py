"""`unused`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from schematizer.commands.connection import service

if TYPE_CHECKING:
    from schematizer.settings import Settings


def unused(settings: Settings, days: int, *, disable: bool) -> None:
    """Lists topics and schemas that were not used for so many days, and disables them if that is wanted."""
    with service(settings.registry) as client:
        found = client.unused(days)
        for each in found:
            what = each.topic if each.schema_id is None else f"{each.topic}, schema {each.schema_id}"
            if disable:
                client.disable(each)
            verb = "disabled" if disable else "unused"
            click.echo(f"{verb}: {what}, last used {each.last_used_at:%Y-%m-%d}")
        click.echo(f"{len(found)} in {days} days")
