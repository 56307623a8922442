"""The commands on keys and the audit log. They work on the database, whether or not a registry runs."""

from __future__ import annotations

import getpass
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import click
from sqlalchemy.exc import SQLAlchemyError

from cdc_common.errors.codes import CdcError, Code
from schematizer.errors import CatalogueError
from schematizer.model.database import Database, reason_of
from schematizer.model.security_tables import Result
from schematizer.security.audit import AuditEvent, AuditLog
from schematizer.security.keys import ApiKeys, in_days

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from schematizer.settings import SchematizerSettings

_ADDRESS = "command"


class _Room(NamedTuple):
    keys: ApiKeys
    audit: AuditLog
    by: str

    def record(self, action: str, about: str) -> None:
        event = AuditEvent(actor=self.by, address=_ADDRESS, action=action, about=about, result=Result.DONE)
        self.audit.record(event)


def create_key(settings: SchematizerSettings, name: str, grants: Sequence[str], expires_days: float | None) -> None:
    with _opened(settings) as room:
        made = room.keys.create(name, grants, in_days(expires_days), by=room.by)
        room.record("keys create", f"{made.key.key_id} {', '.join(made.key.grants)}")
    click.echo(f"key id:  {made.key.key_id}")
    click.echo(f"secret:  {made.secret}")
    click.echo(f"bearer:  {made.bearer}")
    click.echo("The secret is not shown again. Basic: key id and secret. Bearer: the last line.", err=True)


def list_keys(settings: SchematizerSettings) -> None:
    with _opened(settings, must_exist=True) as room:
        for key in room.keys.every():
            click.echo(key.model_dump_json())


def revoke_key(settings: SchematizerSettings, key_id: str) -> None:
    with _opened(settings, must_exist=True) as room:
        revoked = room.keys.revoke(key_id, by=room.by)
        room.record("keys revoke", key_id)
    click.echo(revoked.model_dump_json())


def print_audit(settings: SchematizerSettings, actor: str | None, since: int | None, limit: int) -> None:
    with _opened(settings, must_exist=True) as room:
        found = room.audit.newest(limit, actor) if since is None else room.audit.entries(since, actor, limit)
        for entry in found:
            click.echo(entry.model_dump_json())


@contextmanager
def _opened(settings: SchematizerSettings, *, must_exist: bool = False) -> Iterator[_Room]:
    database = Database(settings.database_url, must_exist=must_exist)
    try:
        yield _Room(ApiKeys(database), AuditLog(database, settings.audit_days), f"command:{getpass.getuser()}")
    except CatalogueError as error:
        raise CdcError(Code.REGISTRY_KEY, error.problem, error.fix) from error
    except SQLAlchemyError as error:
        raise CdcError(
            Code.REGISTRY_DATABASE,
            f"The registry's database failed: {reason_of(error)}.",
            "See that the database is up, and that this user may write to it.",
        ) from error
    finally:
        database.close()
