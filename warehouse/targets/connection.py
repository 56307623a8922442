"""What the loader needs of a warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from stream_runtime.exactly_once.commits import NotOwnerError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from warehouse.records import StoredObject, TableName
    from warehouse.tables.types import Dialect
    from warehouse.targets.staging import Staged


class LoadTakenError(NotOwnerError):
    """Another loader has loaded the table since its state was read."""


class Connection(Protocol):
    """A connection to a warehouse. CdcError WAREHOUSE_AWAY if it does not answer.

    After any other exception than LoadTakenError the transaction that was open is aborted, or its end is unknown: the
    state that is read afterwards tells.
    """

    @property
    def dialect(self) -> Dialect: ...

    @property
    def is_indexed(self) -> bool:
        """Whether tables have primary keys."""
        ...

    def run(self, statement: str, *values: object) -> Sequence[tuple[Any, ...]]:
        """Run a statement with a `?` for each value, and return its rows."""
        ...

    def change(self, statement: str, *values: object) -> int:
        """Run a statement that changes rows, with a `?` for each value, and return their number."""
        ...

    def stage(self, table: str, columns: Sequence[Staged], /) -> None:
        """Copy columns of the same length into a table of the staging."""
        ...

    def transaction(self, table: TableName) -> AbstractContextManager[None]:
        """A transaction for a table. CdcError WAREHOUSE_TABLE for a statement that is refused in it."""
        ...

    def snapshot(self, table: TableName) -> AbstractContextManager[None]:
        """As `transaction`. All its statements see the warehouse as the first one does."""
        ...

    def grants(self, table: TableName, /) -> Sequence[str]:
        """The statements that give the rights on a table again."""
        ...

    def release(self) -> None:
        """Let other processes use the warehouse, until the next statement."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class CopiesObjects(Protocol):
    """A connection to a warehouse that copies objects by itself."""

    def copy_objects(self, table: str, objects: Sequence[StoredObject], /) -> None:
        """Copy all rows of objects into a table of the staging that has their columns, in their order."""
        ...
