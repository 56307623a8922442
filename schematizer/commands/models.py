"""`models check` and `models register`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError, Code
from schematizer.converters.converted import ConversionError
from schematizer.converters.models import convert_model, load_metadata, missing_documentation

if TYPE_CHECKING:
    from sqlalchemy import MetaData

    from schematizer.settings import Settings


def check(place: str) -> None:
    """Raise CdcError DOCUMENTATION if a model lacks a doc or an owner: the gate for continuous integration."""
    metadata = _load(place)
    missing = list(missing_documentation(metadata))
    for line in missing:
        click.echo(line, err=True)
    if missing:
        raise CdcError(
            Code.DOCUMENTATION,
            f"{len(missing)} docs and owners are missing in {place}.",
            "Give each table a comment and info={'owner': …}, and each column a comment or a doc.",
        )
    click.echo(f"ok: {len(metadata.tables)} tables")


def register(settings: Settings, place: str, namespace: str, dialect: str) -> None:
    """Registers every table of the models."""
    metadata = _load(place)
    with SchematizerClient.of_settings(settings.registry) as client:
        for table in metadata.sorted_tables:
            try:
                converted = convert_model(table, dialect, namespace)
            except ConversionError as error:
                raise CdcError(
                    Code.DOCUMENTATION, f"{table.fullname} of {place}: {error}.", "Change the model, or leave it out."
                ) from error
            fields = {
                path: {"doc": field.doc, "owner": field.owner, "pii": field.is_pii}
                for path, field in converted.fields.items()
            }
            made = client.register(
                namespace,
                "avro",
                converted.value_with_key(),
                source=converted.source,
                owner=converted.owner,
                doc=converted.doc,
                fields=fields,
            )
            click.echo(f"{table.fullname}: schema {made.schema_id} in {made.topic} ({made.reason})")


def _load(place: str) -> MetaData:
    sys.path.insert(0, str(Path.cwd()))  # modules of the folder that the command runs in, as for python -m
    try:
        return load_metadata(place)
    except ConversionError as error:
        raise CdcError(Code.DOCUMENTATION, f"{error}.", "Name package.module:Base, as Python imports it.") from error
    finally:
        sys.path.pop(0)
