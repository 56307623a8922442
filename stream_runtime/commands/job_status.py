"""The commands `status` and `retry` of a job: they ask the running driver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.status_client import ask

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from stream_runtime.settings import JobSettings

T = TypeVar("T")

STOPPED_EXIT_STATUS = 4  # of data, as the codes of what stops a source partition


def print_status(
    program: str, settings: JobSettings, text: Callable[[dict[str, Any]], str], *, as_json: bool, advice: str = ""
) -> None:
    """Print what is stopped, and a summary, as `text` makes them. Exits with STOPPED_EXIT_STATUS if a partition is
    stopped. advice: what to do while the job does not run.
    """

    def read(body: bytes) -> tuple[str, bool]:
        status: dict[str, Any] = json.loads(body)
        return body.decode().strip() if as_json else text(status), bool(status["stopped"])

    shown, is_stopped = _ask(program, settings, "status", read, advice)
    click.echo(shown)
    if is_stopped:
        raise SystemExit(STOPPED_EXIT_STATUS)


def retry(program: str, settings: JobSettings, partitions: Sequence[str], advice: str = "") -> None:
    """Make the next try of these stopped partitions, or of all, happen now."""
    due = _ask(program, settings, "retry", _read_retried, advice, partitions)
    for name in due:
        click.echo(f"{name} is tried now")
    for name in sorted(set(partitions) - set(due)):
        click.echo(f"{name} is not stopped, or is being tried already")
    if not partitions and not due:
        click.echo("nothing waits for another try")


def _read_retried(body: bytes) -> list[str]:
    retried: list[str] = json.loads(body)["retried"]
    return retried


def _ask(  # noqa: PLR0913, PLR0917 - of a request
    program: str,
    settings: JobSettings,
    path: str,
    read: Callable[[bytes], T],
    advice: str,
    names: Sequence[str] | None = None,
) -> T:
    try:
        return ask(program, settings, path, read, names)
    except CdcError as error:
        if error.code is not Code.PROGRAM_UNREACHABLE or not advice:
            raise
        raise CdcError(error.code, error.problem, f"{error.fix} {advice}") from error
