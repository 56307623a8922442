"""The joins of a file with the schemas of their inputs, for the commands `check` and `plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from joinery.catalogue import open_catalogue
from joinery.definition_file import load_joins
from joinery.faults import does_not_fit
from joinery.planning.errors import PlanError
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.planning.plan import JoinPlan, plan_join

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any

    from joinery.catalogue import Catalogue
    from joinery.definition import Join
    from joinery.settings import Settings


def print_check(settings: Settings, file: Path) -> None:
    """Print whether the joins fit the schemas of their inputs. CdcError if one does not."""
    _print(settings, file, check_lines)


def print_plan(settings: Settings, file: Path) -> None:
    """Print the joined rows of each join, and what its inputs need. CdcError if one does not fit."""
    _print(settings, file, plan_lines)


def check_lines(joins: tuple[Join, ...], catalogue: Catalogue) -> Iterator[str]:
    """A line for each join. CdcError."""
    for join in joins:
        plan = _plan(join, catalogue)
        if isinstance(plan, JoinPlan):
            yield f"{join.name}: ok, {plan.kind}, into {join.target}"
        else:
            yield plan


def plan_lines(joins: tuple[Join, ...], catalogue: Catalogue) -> Iterator[str]:
    """The lines of each join. CdcError."""
    for join in joins:
        plan = _plan(join, catalogue)
        if not isinstance(plan, JoinPlan):
            yield plan
            continue
        yield f"{join.name}: {plan.kind}, into {join.target}"
        yield f"  key: {_columns(plan.key_fields)}"
        yield f"  row: {_columns(plan.row_fields)}"
        for given in plan.inputs:
            own = [target.column for targets in (given.join, given.ident, given.columns) for target in targets]
            rows = "at most one row for each join key" if given.is_unique else "many rows for each join key"
            kind = "optional, " if given.is_optional else ""
            where = "".join(f", where {text}" for text in plan.join.input[given.name].where)
            yield f"  {given.name}: {given.schema.topic}{where}, {kind}{rows}; the state keeps {', '.join(own)}"


def _print(settings: Settings, file: Path, lines: Any) -> None:  # noqa: ANN401 - one of the functions above
    joins = load_joins(file)
    catalogue = open_catalogue(settings.registry)
    try:
        for line in lines(joins, catalogue):
            click.echo(line)
    finally:
        catalogue.close()


def _plan(join: Join, catalogue: Catalogue) -> JoinPlan | str:
    """The plan, or a line about an input that is not there yet. CdcError JOIN_PLAN, or one of the registry."""
    try:
        schemas = {name: catalogue.input_schema(given) for name, given in join.input.items()}
        found = {name: schema for name, schema in schemas.items() if schema is not None}
        if len(found) < len(schemas):
            waits = next(str(given) for name, given in join.input.items() if name not in found)
            return f"{join.name}: not checked, because the registry has no schema of {waits} yet"
        plan = plan_join(join, found)
        key_schema(plan)
        value_schema(plan)
    except PlanError as error:
        raise does_not_fit(join, error) from error
    return plan


def _columns(fields: list[dict[str, Any]]) -> str:
    return ", ".join(f"{field['name']} {_type(field['type'])}" for field in fields)


def _type(tree: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(tree, list):
        return " or ".join(_type(branch) for branch in sorted(tree, key=_is_null))
    if isinstance(tree, dict):
        return str(tree.get("logicalType") or tree.get("name") or tree["type"])
    return str(tree)


def _is_null(tree: Any) -> bool:  # noqa: ANN401 - JSON
    return bool(tree == "null")
