"""`docs check`, `docs apply` and `docs comments`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import SourceDocumentation
from cdc_common.errors.codes import CdcError, Code
from schematizer.commands.documentation_files import lacking, read_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from cdc_common.clients.registry.views import ManagedSince
    from schematizer.settings import Settings
    from schematizer.topic_files.files.source_file import SourceFile


def check(settings: Settings, paths: Sequence[Path], *, offline: bool) -> None:
    """Check documentation files. CdcError DOCUMENTATION if a file cannot be read or says too little; not offline, also
    if it does not fit the newest schema of its source.
    """
    files, problems = read_files(paths)
    for path, file in files.items():
        problems += lacking(path, file)
    if not offline:
        with SchematizerClient.of_settings(settings.registry) as client:
            for path, file in files.items():
                problems += _differences(client, path, file)
    _report(problems, len(files))


def apply(settings: Settings, paths: Sequence[Path]) -> None:
    """Makes the catalogue say what the files say. Nothing is applied if a file cannot be read."""
    files, problems = read_files(paths)
    _report(problems, len(files))
    with SchematizerClient.of_settings(settings.registry) as client:
        managed = _managed(client, (file.namespace for file in files.values()))
        found = [(path, file.name) for path, file in files.items() if file.name in managed]
        _report([f"{path}: {_documented(name, managed[name])}" for path, name in found], len(files))
        for path, file in files.items():
            known = _known(client, file)
            unknown = client.document(file.namespace, file.source, file.documentation(known.doc if known else None))
            click.echo(f"applied: {file.name} from {path}")
            for field in unknown:
                click.echo(f"warning: {path}: the newest schema of {file.name} has no field {field}", err=True)


def comments(settings: Settings, keyspaces: Sequence[str]) -> None:
    """Makes the comments of Cassandra's tables the docs of their sources. A table without a comment keeps its doc."""
    from cdc_common.clients.cassandra import connect  # noqa: PLC0415 - the other commands do not need the driver

    with connect(settings.cassandra) as cassandra, SchematizerClient.of_settings(settings.registry) as client:
        managed = _managed(client, (f"{settings.kafka.topic_prefix}.{keyspace}" for keyspace in keyspaces))
        applied = 0
        for keyspace in keyspaces:
            query = f"SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = '{_literal(keyspace)}'"  # noqa: S608 - quoted
            namespace = f"{settings.kafka.topic_prefix}.{keyspace}"
            for row in cassandra.rows(query):
                name = f"{namespace}/{row['table_name']}"
                if row["comment"] and name in managed and "doc" in managed[name].content:
                    click.echo(f"left: the comment: {_documented(name, managed[name])}", err=True)
                elif row["comment"]:
                    _set_doc(client, namespace, row["table_name"], row["comment"])
                    click.echo(f"applied: the comment of {keyspace}.{row['table_name']}")
                    applied += 1
        click.echo(f"{applied} comments applied")


def _managed(client: SchematizerClient, namespaces: Iterable[str]) -> dict[str, ManagedSince]:
    """The notes about topic files that document sources of these namespaces, by the source's name."""
    every = {namespace: client.documentation_files(namespace) for namespace in sorted(set(namespaces))}
    return {f"{namespace}/{source}": one for namespace, found in every.items() for source, one in found.items()}


def _documented(name: str, by: ManagedSince) -> str:
    return f"{name} is documented by {by.about['path']} of {by.deployment}: change it there, and run topics apply"


def _set_doc(client: SchematizerClient, namespace: str, source: str, doc: str) -> None:
    try:
        known = client.documentation(namespace, source)
    except RegistryRequestError as error:
        if not error.is_not_found:
            raise
        known = SourceDocumentation()
    client.document(namespace, source, known.model_copy(update={"doc": doc}))


def _differences(client: SchematizerClient, path: Path, file: SourceFile) -> list[str]:
    known = _known(client, file)
    found = [] if file.doc or (known and known.doc) else [f"{path}: {file.name} has no doc"]
    if known is None:
        return found
    elements = {element.path: element for element in client.source_elements(file.namespace, file.source)}
    if elements:
        found += [f"{path}: {file.name} has no field {name}" for name in file.fields if name not in elements]
    found += [
        f"{path}: the field {name} of {file.name} has no doc"
        for name, element in elements.items()
        if name not in file.fields and not element.doc
    ]
    return found


def _known(client: SchematizerClient, file: SourceFile) -> SourceDocumentation | None:
    """None if the catalogue has no such source yet."""
    try:
        return client.documentation(file.namespace, file.source)
    except RegistryRequestError as error:
        if error.is_not_found:
            return None
        raise


def _report(problems: Sequence[str], files: int) -> None:
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise CdcError(
            Code.DOCUMENTATION, f"{len(problems)} problems in {files} documentation files.", "Correct them, as listed."
        )
    click.echo(f"ok: {files} documentation files")


def _literal(text: str) -> str:
    return text.replace("'", "''")
