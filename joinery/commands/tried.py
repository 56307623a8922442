"""Runs a case of a join and prints what comes out, for the command `try`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from joinery.cases.changelog import read_value
from joinery.cases.definition import Case
from joinery.cases.errors import CaseError
from joinery.cases.trial import Trial
from joinery.definition_file import load, load_joins
from joinery.faults import case_failed, does_not_fit
from joinery.planning.errors import PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from joinery.cases.trial import Joined
    from joinery.definition import Join


def print_trial(file: Path, case_file: Path) -> None:
    """Print each change of the case with what comes out, then the joined rows. CdcError if they are not expected."""
    joins, case = load_joins(file), load(case_file, "case", Case)
    try:
        for line in trial_lines(_join_of(joins, case), case):
            click.echo(line)
    except CaseError as error:
        raise case_failed(case_file, error.reason) from error


def trial_lines(join: Join, case: Case) -> Iterator[str]:
    """The lines of the trial. CaseError at the end if the joined rows are not the expected ones; CdcError JOIN_PLAN."""
    try:
        trial = Trial(join, case)
    except PlanError as error:
        raise does_not_fit(join, error) from error
    for change, made in trial.run():
        yield f"{change}{_text(change.row)}"
        yield from (f"  {_joined(joined)}" for joined in made)
    yield "joined rows:"
    yield from (f"  {text}" for text in sorted(map(_text, trial.rows)))
    if case.expected is not None:
        yield from _compare(trial.rows, [_whole(trial, row) for row in case.expected])


def _compare(rows: list[dict[str, Any]], expected: list[dict[str, Any]]) -> Iterator[str]:
    missing, more = _without(expected, rows), _without(rows, expected)
    yield from (f"missing: {_text(row)}" for row in missing)
    yield from (f"not expected: {_text(row)}" for row in more)
    if missing or more:
        raise CaseError(f"{len(missing)} expected rows are missing, and {len(more)} others are there")


def _without(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[dict[str, Any]]:
    left = list(rows)
    for other in others:
        if other in left:
            left.remove(other)
    return left


def _whole(trial: Trial, row: dict[str, Any]) -> dict[str, Any]:
    """An expected row, with null in the columns that it does not name. CaseError for a column that there is not."""
    if unknown := [name for name in row if name not in trial.fields]:
        raise CaseError(f"an expected row has {unknown[0]}, and joined rows have {', '.join(trial.fields)}")
    return {name: read_value(trial.type_of(name), row.get(name)) for name in trial.fields}


def _join_of(joins: tuple[Join, ...], case: Case) -> Join:
    """The join of the case. CaseError."""
    names = [join.name for join in joins]
    if case.join is None and len(joins) > 1:
        raise CaseError(f"it does not say which join it is of: {', '.join(names)}")
    found = [join for join in joins if case.join in (None, join.name)]
    if not found:
        raise CaseError(f"there is no join {case.join!r}: the file has {', '.join(names)}")
    return found[0]


def _joined(joined: Joined) -> str:
    if joined.op == "u":
        return f"u {_text(joined.before)} -> {_text(joined.after)}"
    return f"{joined.op} {_text(joined.before if joined.after is None else joined.after)}"


def _text(row: dict[str, Any] | None) -> str:
    return json.dumps(row, default=_shown, ensure_ascii=False)


def _shown(value: Any) -> str:  # noqa: ANN401 - what Avro gives
    return value.hex() if isinstance(value, bytes) else str(value)
