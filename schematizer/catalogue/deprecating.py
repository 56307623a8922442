"""Deprecated sources: they work as before, and say what to read instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.catalogue import lookups
from schematizer.catalogue.namespaces import source_view
from schematizer.errors import invalid
from schematizer.model.base import now

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from cdc_common.clients.registry.views import Source
    from schematizer.model.database import Database

_FIX = "Name another source of the catalogue, as NAMESPACE/SOURCE."


class Deprecating:
    """Marks sources as deprecated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def deprecate(self, namespace: str, source: str, reason: str, successor: str | None, *, by: str) -> Source:
        """Say why a source should no longer be read, and which one instead (`NAMESPACE/SOURCE`). INVALID without a
        reason, or for a successor that is not another source.
        """
        if not reason.strip():
            raise invalid("A deprecation has no reason.", "Say why the source should no longer be read.")

        def transaction(session: Session) -> Source:
            row = lookups.source_row(session, namespace, source)
            if successor is not None:
                _check_successor(session, f"{namespace}/{source}", successor)
            if (row.deprecation, row.successor) != (reason, successor):
                row.deprecation, row.successor = reason, successor
                row.deprecated_at = row.deprecated_at or now()
                detail = f"{reason} Instead: {successor}" if successor else reason
                change = lookups.Change("deprecate source", namespace, f"{namespace}/{source}", detail)
                lookups.record(session, by, change)
            return source_view(row)

        return self._database.write_session(transaction)

    def revoke(self, namespace: str, source: str, *, by: str) -> Source:
        """Take a deprecation back. Nothing happens without one."""

        def transaction(session: Session) -> Source:
            row = lookups.source_row(session, namespace, source)
            if row.deprecation is not None:
                row.deprecation = row.successor = row.deprecated_at = None
                change = lookups.Change("revoke deprecation", namespace, f"{namespace}/{source}")
                lookups.record(session, by, change)
            return source_view(row)

        return self._database.write_session(transaction)


def _check_successor(session: Session, source: str, successor: str) -> None:
    namespace, _, name = successor.partition("/")
    if successor == source or lookups.find_source(session, namespace, name) is None:
        raise invalid(f"{successor} cannot be the successor of {source}: it is not another source.", _FIX)
