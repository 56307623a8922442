"""The forms of a table: the rows as they are, each change, or each version of a row and when it was valid."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warehouse.tables.types import Dialect

KEY, SEQUENCE, OP = "_key", "_sequence", "_op"
PARTITION, OFFSET, CHANGED_AT = "_partition", "_offset", "_changed_at"
VALID_FROM, VALID_TO, IS_CURRENT = "valid_from", "valid_to", "is_current"
DELETED_AT = "_deleted_at"
_KEY = f"{KEY} UUID NOT NULL"
_SEQUENCE = f"{SEQUENCE} BIGINT NOT NULL"


class Form(NamedTuple):
    """A form of tables."""

    # The name in the settings.
    name: str
    # What follows the table's name.
    suffix: str
    # The columns that the warehouse adds, as PostgreSQL defines them.
    own: tuple[str, ...]
    # The columns of the primary key, in warehouses that have indexes.
    primary_key: tuple[str, ...]
    # Whether all versions of a row are loaded, and not only the newest.
    keeps_all: bool
    # Whether deleted keys are kept with their sequences.
    has_tombstones: bool

    @property
    def marks_deleted(self) -> bool:
        """Whether deleted rows stay, and say when they were deleted."""
        return any(definition.startswith(DELETED_AT) for definition in self.own)

    @property
    def shows_deleted(self) -> bool:
        """Whether a deletion has the row before it."""
        return self.marks_deleted or OP in self.own_names

    @property
    def own_names(self) -> tuple[str, ...]:
        return tuple(definition.partition(" ")[0] for definition in self.own)

    def definitions(self, dialect: Dialect) -> Iterator[str]:
        """The columns that the warehouse adds, with the types of a kind of warehouse."""
        for definition in self.own:
            name, kind, *rest = definition.split(" ")
            yield " ".join((name, dialect.own_type(kind), *rest))


CURRENT = Form("current", "", (_KEY, _SEQUENCE), (KEY,), keeps_all=False, has_tombstones=True)
MARKED = Form(
    "current",
    "",
    (_KEY, _SEQUENCE, f"{DELETED_AT} TIMESTAMPTZ"),
    (KEY,),
    keeps_all=False,
    has_tombstones=False,
)
"""As CURRENT. A deleted row stays."""
CHANGES = Form(
    "changes",
    "__changes",
    (
        _KEY,
        _SEQUENCE,
        f"{OP} TEXT NOT NULL",
        f"{PARTITION} INTEGER NOT NULL",
        f"{OFFSET} BIGINT NOT NULL",
        f"{CHANGED_AT} TIMESTAMPTZ",
    ),
    (PARTITION, OFFSET),
    keeps_all=True,
    has_tombstones=False,
)
HISTORY = Form(
    "history",
    "__history",
    (
        _KEY,
        _SEQUENCE,
        f"{VALID_FROM} TIMESTAMPTZ NOT NULL",
        f"{VALID_TO} TIMESTAMPTZ",
        f"{IS_CURRENT} BOOLEAN NOT NULL",
    ),
    (KEY, SEQUENCE),
    keeps_all=True,
    has_tombstones=True,
)
FORMS = {form.name: form for form in (CURRENT, CHANGES, HISTORY)}
