"""The errors of stores, in the words of the job that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from cdc_common.errors.codes import CdcError


class StoreFaults(Protocol):
    """A factory of a job for each situation. problem: without credentials."""

    def location_refused(self, location: str, problem: str, /) -> CdcError:
        """A location that cannot be used as it is."""
        ...

    def store_away(self, location: str, problem: str, /) -> CdcError:
        """A store that may answer later."""
        ...
