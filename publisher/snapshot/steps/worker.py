"""The process that takes a snapshot beside the publisher: reading SSTables must not slow the log down.

The publisher starts it, and tells it through a pipe to pause or to continue. It ends when the publisher ends, in any
way, because that closes the pipe.
"""

from __future__ import annotations

import os
from time import sleep
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from cdc_common.program.cli import reported_errors
from cdc_common.program.logs import configure_logging
from publisher.snapshot.connections.link import open_link
from publisher.snapshot.connections.node import Published
from publisher.snapshot.connections.nodetool import Nodetool
from publisher.snapshot.state.records import Records
from publisher.snapshot.steps.run import SnapshotRun

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from publisher.settings import Settings

GO_ON, PAUSE, CANCEL = "", "pause", "cancel"  # any other order is a reason to hold
ASK = "published?"  # from the worker

_NICENESS = 10
_HOLD_SECONDS = 0.2


class StoppedError(Exception):
    """The publisher or its user wants the worker to stop now: a later one continues."""


class PausedError(StoppedError):
    """Its user wants it to stop until further notice."""


class CancelledError(Exception):
    """Its user does not want the snapshot any more."""


class Orders:
    """The publisher's orders to its worker."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._order = GO_ON
        self._published: Published | None = None
        self.while_held: Callable[[], None] | None = None

    def serve(self) -> None:
        """Returns once the snapshot may go on; StoppedError or CancelledError if it must not."""
        self._read()
        while self._order:
            if self.while_held is not None:
                self.while_held()
            sleep(_HOLD_SECONDS)
            self._read()

    def published(self) -> Published:
        """Return how far the log is published now. StoppedError or CancelledError as `serve`."""
        self._published = None
        self._pipe.send(ASK)
        while self._published is None:
            self.serve()
            sleep(_HOLD_SECONDS)
        return self._published

    def _read(self) -> None:
        try:
            while self._pipe.poll():
                said = self._pipe.recv()
                if isinstance(said, str):
                    self._order = said
                else:
                    self._published = Published(*said)
        except (EOFError, OSError):
            raise StoppedError from None
        if self._order == PAUSE:
            self._order = GO_ON  # as below
            raise PausedError
        if self._order == CANCEL:
            self._order = GO_ON  # what is left to do for it is not to be held up
            raise CancelledError


def run_worker(settings: Settings, name: str, pipe: Connection) -> None:
    """Take the snapshot of that table as far as possible; the record has the result."""
    os.nice(_NICENESS)
    configure_logging(settings.log)
    with reported_errors(is_service=True):
        _run(settings, name, Orders(pipe))


def _run(settings: Settings, name: str, orders: Orders) -> None:
    records = Records(settings.publisher.state_directory)
    try:
        with records.as_worker(orders.serve):
            _take(settings, name, orders, records)
    except (StoppedError, CancelledError):
        return  # one that was cancelled while it waited is given up by the next worker


def _take(settings: Settings, name: str, orders: Orders, records: Records) -> None:
    record = records.read(name)
    if record is None or record.is_final:
        return
    try:
        with open_link(settings, orders) as link:
            run = SnapshotRun(settings, link, Nodetool(settings.publisher.nodetool), records, record)
            try:
                run.run()
            except CancelledError:
                run.give_up("it was cancelled")
            except PausedError:
                run.pause()
    except CdcError as error:
        latest = records.read(name)
        if latest is not None:
            records.write(latest.moved(problem=f"{error.code.text} {error.problem} {error.fix}"))
        raise
