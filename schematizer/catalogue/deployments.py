"""Deployments of topic files: the lease of the one who applies them, and what was made from them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import select

from cdc_common.clients.registry.views import Lease, Managed, ManagedSince
from schematizer.catalogue import lookups
from schematizer.errors import conflict, invalid
from schematizer.model.base import now
from schematizer.model.deployment_tables import DEPLOYMENT_LENGTH, LeaseRow, ManagedRow

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.orm import Session

    from schematizer.model.database import Database

_DOCUMENTING = ("entry", "source")
"""Kinds of things that have the documentation of a source."""
_LONGEST_LEASE = 3600  # seconds


class Thing(NamedTuple):
    """A managed thing by its name."""

    # The kind of thing.
    kind: str
    # Its name.
    name: str


class Deployments:
    """The deployments that clients name: an environment of topic files is one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def lease(self, deployment: str, holder: str, seconds: int, token: int | None, *, by: str) -> Lease:
        """Give the right to apply, or renew it. CONFLICT if another holder has it, or the token's time is over."""
        _check(deployment, holder, seconds)

        def transaction(session: Session) -> Lease:
            row = session.get(LeaseRow, deployment)
            moment = now()
            if token is not None:
                row = _current(row, deployment, token)
            elif row is not None and row.expires_at > moment:
                raise conflict(
                    f"{row.holder} applies {deployment}, until {row.expires_at:%Y-%m-%d %H:%M:%S} UTC at least.",
                    "Wait until it has ended. If it was killed, its lease ends at that time.",
                )
            elif row is None:
                row = LeaseRow(deployment=deployment, holder=holder, token=1, expires_at=moment)
                session.add(row)
            else:
                row.token += 1
            if token is None:
                lookups.record(session, by, lookups.Change("lease deployment", None, deployment, holder))
            row.holder, row.expires_at = holder, moment + timedelta(seconds=seconds)
            return Lease(deployment=deployment, holder=holder, token=row.token, expires_at=row.expires_at)

        return self._database.write_session(transaction)

    def release(self, deployment: str, token: int, *, by: str) -> None:
        """End a lease. Nothing happens if its time is over."""

        def transaction(session: Session) -> None:
            row = session.get(LeaseRow, deployment)
            if row is not None and row.token == token and row.expires_at > now():
                row.expires_at = now()
                lookups.record(session, by, lookups.Change("release deployment", None, deployment, row.holder))

        self._database.write_session(transaction)

    def managed(self, deployment: str | None, kind: str | None = None, name: str | None = None) -> list[ManagedSince]:
        """Return the managed things, by kind and name: of a deployment or all, of a kind or all, of a name or all."""
        query = select(ManagedRow).order_by(ManagedRow.deployment, ManagedRow.kind, ManagedRow.name)
        wanted = {ManagedRow.deployment: deployment, ManagedRow.kind: kind, ManagedRow.name: name}
        for column, value in wanted.items():
            query = query if value is None else query.where(column == value)
        return self._database.read_session(lambda session: [_view(row) for row in session.scalars(query)])

    def of_names(self, kind: str, names: Collection[str]) -> list[ManagedSince]:
        """Return the managed things of a kind that have one of these names, in any deployment."""
        query = select(ManagedRow).where(ManagedRow.kind == kind).order_by(ManagedRow.deployment, ManagedRow.name)

        def transaction(session: Session) -> list[ManagedSince]:
            batches = _batches(sorted(names))
            return [_view(row) for some in batches for row in session.scalars(query.where(ManagedRow.name.in_(some)))]

        return self._database.read_session(transaction)

    def documenting(self, namespace: str) -> dict[str, ManagedSince]:
        """Return what was made from files that document sources of a namespace, by source."""
        query = select(ManagedRow).where(ManagedRow.kind.in_(_DOCUMENTING)).order_by(ManagedRow.id)
        every = self._database.read_session(lambda session: [_view(row) for row in session.scalars(query)])
        places = ((str(one.about.get("source", one.name)).partition("/"), one) for one in every)
        return {source: one for (place, _, source), one in places if place == namespace and source}

    def change(self, deployment: str, token: int, put: Sequence[Managed], remove: Sequence[Thing], *, by: str) -> None:
        """Keep what was made or changed, and forget what is no longer managed. CONFLICT without a valid lease."""

        def transaction(session: Session) -> None:
            _current(session.get(LeaseRow, deployment), deployment, token)
            query = select(ManagedRow).where(ManagedRow.deployment == deployment)
            names = {thing.name for thing in put} | {thing.name for thing in remove}
            known = {
                (row.kind, row.name): row
                for batch in _batches(sorted(names))
                for row in session.scalars(query.where(ManagedRow.name.in_(batch)))
            }
            for thing in put:
                row = known.get((thing.kind, thing.name))
                action = "change managed" if row else "add managed"
                if row is None:
                    row = known[thing.kind, thing.name] = ManagedRow(
                        deployment=deployment, kind=thing.kind, name=thing.name
                    )
                    session.add(row)
                content, about = _text(thing.content), _text(thing.about)
                if (row.content, row.about) != (content, about):
                    row.content, row.about, row.changed_by, row.changed_at = content, about, by, now()
                    lookups.record(session, by, _change(action, deployment, thing.kind, thing.name, content))
            for gone in remove:
                row = known.pop(gone, None)
                if row is not None:
                    session.delete(row)
                    lookups.record(session, by, _change("remove managed", deployment, gone.kind, gone.name, ""))

        self._database.write_session(transaction)


def _check(deployment: str, holder: str, seconds: int) -> None:
    lookups.checked_name("deployment", deployment)
    if len(deployment) > DEPLOYMENT_LENGTH or not holder or seconds > _LONGEST_LEASE:
        raise invalid(
            f"A lease of {deployment} names no holder, or its name or its time is too long.",
            f"Use a name of at most {DEPLOYMENT_LENGTH} characters, a holder, and at most {_LONGEST_LEASE} s.",
        )


def _current(row: LeaseRow | None, deployment: str, token: int) -> LeaseRow:
    if row is None or row.token != token or row.expires_at <= now():
        raise conflict(
            f"The lease {token} of {deployment} has ended.",
            "Apply again: it continues with what is left. Another apply may have begun since.",
        )
    return row


def _change(action: str, deployment: str, kind: str, name: str, detail: str) -> lookups.Change:
    return lookups.Change(action, None, f"{deployment}: {kind} {name}", detail)


def _text(content: dict[str, object]) -> str:
    return json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _batches(names: Sequence[str], at_once: int = 500) -> list[Sequence[str]]:
    return [names[start : start + at_once] for start in range(0, len(names), at_once)]


def _view(row: ManagedRow) -> ManagedSince:
    return ManagedSince(
        deployment=row.deployment,
        kind=row.kind,
        name=row.name,
        content=json.loads(row.content),
        about=json.loads(row.about),
        changed_by=row.changed_by,
        changed_at=row.changed_at,
    )
