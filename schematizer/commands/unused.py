"""`unused`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.kinds import Status
from cdc_common.clients.registry.schematizer import SchematizerClient

if TYPE_CHECKING:
    from schematizer.settings import Settings


def unused(settings: Settings, days: int, *, disable: bool) -> None:
    """Lists topics and schemas that were not used for so many days, and disables them if that is wanted."""
    with SchematizerClient.of_settings(settings.registry) as client:
        found = client.unused(days)
        for entry in found:
            what = entry.topic if entry.schema_id is None else f"{entry.topic}, schema {entry.schema_id}"
            if disable:
                client.set_status(entry.topic, Status.DISABLED, schema_id=entry.schema_id)
            verb = "disabled" if disable else "unused"
            click.echo(f"{verb}: {what}, last used {entry.last_used_at:%Y-%m-%d}")
        click.echo(f"{len(found)} in {days} days")
