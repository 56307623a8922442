"""A protocol run in a process of its own, forked from one that has imported everything: ready at once.

`start(setup, fault)` returns the process; what it prints is in a file.
"""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import signal
import sys
import time
import traceback
import uuid
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dev.verify.chaos.processes import process_state, wait_until
from stream_runtime import fault_points
from stream_runtime.fault_points import Fault, FaultPoint, InjectedFaultError, point_named
from stream_runtime.kafka import producer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from stream_runtime.fault_points import Point

END_SECONDS = 90.0
_servers = multiprocessing.get_context("forkserver")
_servers.set_forkserver_preload(
    [
        __name__,
        "tests.support.archive.archive_run",
        "tests.support.materializer.move_run",
        "tests.support.materializer.protocol_run",
        "tests.support.stream_runtime.share_run",
        "tests.support.transformer.transform_run",
        "tests.support.warehouse.object_run",
        "tests.support.warehouse.warehouse_run",
    ]
)


class Runs(Protocol):
    """A run of a protocol over one partition: tests.support.materializer.protocol_run.Setup, or that of a transformer.
    It is pickled.
    """

    @property
    def folder(self) -> str: ...

    def run(self, until: int | None = None, **settings: object) -> None:
        """Run the program in this process, up to an offset, or to the end. `settings` are the program's."""
        ...


class Child(NamedTuple):
    """A process that runs the partition's task to the end, unless its fault strikes."""

    # The process.
    process: ForkServerProcess
    # The file with its output.
    log: Path

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def wait(self) -> int:
        """Its exit status: the negative signal's number if one has ended it."""
        self.process.join(END_SECONDS)
        if self.process.exitcode is None:
            os.kill(self.pid, signal.SIGUSR1)  # its stacks go to its log
            time.sleep(1)
            self.process.kill()
            raise AssertionError(f"it does not end:\n{self.output()}")
        return self.process.exitcode

    def wait_until_stopped(self) -> None:
        self.wait_until_stopped_or_ended()
        assert process_state(self.pid) == "T", self.output()

    def wait_until_stopped_or_ended(self) -> None:
        wait_until(lambda: process_state(self.pid) in {"T", "gone"}, "it stopped itself")

    def output(self) -> str:
        return self.log.read_text()

    def reached(self) -> dict[Point, int]:
        """Return how often each point was reached, once it has ended by itself."""
        lines = (line.split() for line in self.output().splitlines() if line.startswith("reached "))
        return {point_named(name): int(count) for _, name, count in lines}


def start(
    setup: Runs,
    fault: Fault | None = None,
    *,
    until: int | None = None,
    settings: Mapping[str, object] | None = None,
    client: Mapping[str, object] | None = None,
    prepare: Callable[[], object] | None = None,
) -> Child:
    """Run up to an offset; `settings` are the materializer's, `client` a producer's of librdkafka; `prepare` is called
    in the process before.
    """
    log = Path(setup.folder) / f"child-{uuid.uuid4().hex}"
    arguments = (setup, fault, log, until, settings or {}, client or {}, prepare)
    process = _servers.Process(target=_main, args=arguments)
    process.start()
    return Child(process, log)


def census(setup: Runs, until: int | None = None) -> dict[Point, int]:
    """Run to the end, and tell how often each point was reached."""
    child = start(setup, Fault(next(iter(FaultPoint)), 0, "count"), until=until)
    assert child.wait() == 0, child.output()
    return child.reached()


def _main(
    setup: Runs,
    fault: Fault | None,
    log: Path,
    until: int | None,
    settings: Mapping[str, object],
    client: Mapping[str, object],
    prepare: Callable[[], object] | None,
) -> None:
    with log.open("wb") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    faulthandler.register(signal.SIGUSR1)
    fault_points.armed = fault
    names = vars(producer)
    made = names["_open_producer"]
    names["_open_producer"] = lambda kafka, given, **own: made(kafka, {**given, **client}, **own)
    if prepare is not None:
        prepare()
    try:
        _run(setup, until, settings)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        for point, count in fault_points.reached.items():
            sys.stdout.write(f"reached {point.name} {count}\n")
        sys.stdout.flush()


def _run(setup: Runs, until: int | None, settings: Mapping[str, object]) -> None:
    """Again where the fault was raised, as Spark does with a task that failed."""
    while True:
        try:
            setup.run(until, **settings)
        except InjectedFaultError as error:
            sys.stdout.write(f"raised {error}\n")
        else:
            return
