"""The error of one table."""

from __future__ import annotations

from cdc_common.errors.codes import CdcError


class TableError(CdcError):
    """Concerns one table: it waits, and the publisher goes on."""

    @classmethod
    def of(cls, error: CdcError) -> TableError:
        """The same problem, which concerns one table alone."""
        return cls(error.code, error.problem, error.fix)
