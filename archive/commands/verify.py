"""`cassandra-archive verify`: the ledger against the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archive.events.ledger import Ledger
from archive.events.verify import LedgerCheck
from archive.faults import ARCHIVE_FAULTS, ledger_broken
from archive.files import open_store
from stream_runtime.kafka import command_errors

if TYPE_CHECKING:
    from archive.events.verify import Verified
    from archive.settings import Settings


def verify_ledger(settings: Settings, *, read_rows: bool) -> Verified:
    """Check all committed file events. CdcError(ARCHIVE_LEDGER) if something does not fit."""
    own = settings.archive
    check = LedgerCheck(open_store(own.location), read_rows=read_rows)
    with command_errors("read the file events", ARCHIVE_FAULTS):
        found = check.check(read.event for read in Ledger(settings.kafka, own.events_topic).read())
    if found.problems:
        raise ledger_broken(found.problems)
    return found
