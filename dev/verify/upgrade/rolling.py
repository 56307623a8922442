"""One program after the other, to another release: the order that docs/guides/upgrade.md gives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dev.local_stack.servers.programs import Program, Release
    from dev.local_stack.servers.stack import Stack

LOAD_SECONDS = 10.0  # before each program's turn, and after the last one's
# What an older release says if a newer one has written what it does not read: its rollback is refused.
REFUSALS = (Code.STATE_FORMAT, Code.REGISTRY_DATABASE)
REFUSE_SECONDS = 5.0


class Step(NamedTuple):
    """The outcome of one program."""

    # The name of the program.
    program: str
    # The time until it worked again, in s.
    seconds: float
    # The code by which it refused; None if it did not.
    refused: str | None = None


class Roller:
    """Moves the programs of a stack to a release and back, and says how it went."""

    def __init__(self, stack: Stack, report: Callable[[str], None]) -> None:
        self._stack = stack
        self._report = report

    def upgrade(self, release: Release) -> list[Step]:
        """Registry, materializer, publishers, fillers: a newer message or request never meets an older program."""
        stack = self._stack
        return self._move([stack.schematizer, stack.materializer, *stack.publishers, *stack.fillers], release)

    def roll_back(self, release: Release) -> list[Step]:
        """The other way round. A program that refuses what the newer release has written stays with that one."""
        stack = self._stack
        return self._move([*stack.fillers, *stack.publishers, stack.materializer, stack.schematizer], release)

    def _move(self, programs: Sequence[Program], release: Release) -> list[Step]:
        steps = []
        for program in programs:
            time.sleep(LOAD_SECONDS)
            steps.append(self._restart(program, release))
            step = steps[-1]
            what = f"refuses with {step.refused} and stays" if step.refused else "works"
            self._report(f"{step.program} {what} after {step.seconds:.1f} s")
            self._stack.check()
        time.sleep(LOAD_SECONDS)
        return steps

    def _restart(self, program: Program, release: Release) -> Step:
        before = program.release
        began = time.monotonic()
        program.stop()
        program.release = release
        try:
            program.start()
            time.sleep(REFUSE_SECONDS)
            refused = refusal(program)
        except CdcError:
            refused = refusal(program)
            if refused is None:
                raise
        if refused is None:
            return Step(program.name, time.monotonic() - began - REFUSE_SECONDS)
        program.stop()
        program.release = before
        program.start()
        return Step(program.name, time.monotonic() - began, refused)


def refusal(program: Program) -> str | None:
    """The code in its log by which it says that something is of a newer release."""
    output = program.output()
    return next((code.text for code in REFUSALS if code.text in output), None)
