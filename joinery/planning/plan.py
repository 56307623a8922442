"""Plans a join: which columns of each input are needed for what, and the fields of joined rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages.avro.encoding import NULL
from joinery.conditions import ALL, Column
from joinery.definition import Join
from joinery.joining.records import Rule
from joinery.planning.column_types import compared_type, is_nullable, nullable
from joinery.planning.digest import digest_of
from joinery.planning.errors import PlanError
from joinery.planning.input_schema import InputSchema
from joinery.planning.row_filters import RowFilter, plan_filters

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class Target(NamedTuple):
    """A field of the joined row, and the column of an input that it is made of."""

    # The column's name in the input.
    column: str
    # The field of the joined row, whose type is a tree.
    field: dict[str, Any]


class InputPlan(NamedTuple):
    """An input, and its columns in joined rows."""

    # Its name in the join.
    name: str
    # Its schemas.
    schema: InputSchema
    # Whether joined rows may lack a row of it.
    is_optional: bool
    # The columns of the join key.
    join: tuple[Target, ...]
    # The columns of its primary key, without those of the join key.
    ident: tuple[Target, ...]
    # The other columns of joined rows.
    columns: tuple[Target, ...]
    # What its rows must pass.
    filters: tuple[RowFilter, ...]

    @property
    def is_unique(self) -> bool:
        """Whether it has at most one row for each join key."""
        return not self.ident


class JoinPlan(NamedTuple):
    """A join that fits the schemas of its inputs."""

    # Its definition.
    join: Join
    # Its inputs, in the order of the file.
    inputs: tuple[InputPlan, ...]

    @property
    def key_fields(self) -> list[dict[str, Any]]:
        """The fields of the joined key: the join key's columns once, then each input's other key columns."""
        own = [target.field for given in self.inputs for target in given.ident]
        return [target.field for target in self.inputs[0].join] + own

    @property
    def row_fields(self) -> list[dict[str, Any]]:
        """The fields of the joined row: those of the key first."""
        return self.key_fields + [target.field for given in self.inputs for target in given.columns]

    @property
    def kind(self) -> str:
        """How many rows of inputs have a join key."""
        many = sum(not given.is_unique for given in self.inputs)
        return ("one-to-one", "one-to-many", "many-to-many")[min(many, 2)]

    @property
    def personal(self) -> frozenset[str]:
        """The fields of joined rows that are made of personal columns."""
        targets = ((given, target) for given in self.inputs for target in (*given.join, *given.ident, *given.columns))
        return frozenset(target.field["name"] for given, target in targets if target.column in given.schema.pii)

    @property
    def rule(self) -> Rule:
        return Rule(
            tuple(given.is_optional for given in self.inputs),
            tuple(NULL * len(given.ident) for given in self.inputs),
            tuple(NULL * len(given.columns) for given in self.inputs),
            self.join.most_rows,
            digest_of(self),
        )


def plan_join(join: Join, schemas: Mapping[str, InputSchema], kept: Collection[str] | None = None) -> JoinPlan:
    """Plan a join. PlanError if it does not fit the schemas of its inputs, which are given by name.

    kept: the fields that joined rows have so far. `*` takes no other columns then.
    """
    return _Planner(join, schemas, kept).plan()


class _Planner:
    def __init__(self, join: Join, schemas: Mapping[str, InputSchema], kept: Collection[str] | None) -> None:
        self._join = join
        self._kept = kept
        self._schemas = schemas
        self._renames = join.renames()
        self._key = join.columns()
        for column in {*self._renames, *(Column(name, of) for columns in self._key for name, of in columns.items())}:
            self._field(column)

    def plan(self) -> JoinPlan:
        selected = self._selected()
        key = [self._join_field(columns) for columns in self._key]
        inputs = tuple(self._input(name, key, selected[name]) for name in self._join.input)
        plan = JoinPlan(self._join, inputs)
        self._check_names(plan)
        return plan

    def _input(self, name: str, key: Sequence[dict[str, Any]], selected: Sequence[str]) -> InputPlan:
        schema, is_optional = self._schemas[name], self._join.input[name].optional
        join = tuple(Target(columns[name], field) for columns, field in zip(self._key, key, strict=True))
        of_join = {target.column for target in join}
        ident = [column for column in schema.keys if column not in of_join]
        others = [column for column in selected if column not in of_join and column not in schema.keys]
        return InputPlan(
            name,
            schema,
            is_optional,
            join,
            tuple(Target(column, self._own_field(Column(name, column), is_optional=is_optional)) for column in ident),
            tuple(Target(column, self._own_field(Column(name, column), is_optional=is_optional)) for column in others),
            plan_filters(name, schema, self._join.input[name].filters()),
        )

    def _field(self, column: Column) -> dict[str, Any]:
        """The column's field in its input. PlanError if there is none."""
        schema = self._schemas[column.input]
        if column.name not in schema.columns:
            raise PlanError(f"{column} does not exist; the columns of {schema.topic} are {', '.join(schema.columns)}")
        return schema.columns[column.name]

    def _selected(self) -> dict[str, list[str]]:
        """The names of the selected columns of each input, each once."""
        found: dict[str, dict[str, None]] = {name: {} for name in self._join.input}
        for selected in self._join.selected():
            of, name = selected.column
            if name != ALL:
                self._field(selected.column)
            found[of] |= dict.fromkeys(self._all_of(of) if name == ALL else [name])
        return {name: list(columns) for name, columns in found.items()}

    def _all_of(self, name: str) -> list[str]:
        """The columns of an input that `*` stands for."""
        columns = list(self._schemas[name].columns)
        if self._kept is None:
            return columns
        return [column for column in columns if self._renames.get(Column(name, column), column) in self._kept]

    def _join_field(self, columns: Mapping[str, str]) -> dict[str, Any]:
        """The field of a column of the join key, which may be null only if such a row may be alone."""
        all_columns = [Column(*item) for item in columns.items()]
        fields = [self._field(column) for column in all_columns]
        made = compared_type(
            [
                (str(column), field["type"], self._schemas[column.input].named)
                for column, field in zip(all_columns, fields, strict=True)
            ]
        )
        renames = [self._renames[column] for column in all_columns if column in self._renames]
        if len(set(renames)) > 1:
            raise PlanError(f"{' = '.join(map(str, all_columns))} is one column, and select gives it several names")
        field = {**fields[0], "name": renames[0] if renames else all_columns[0].name}
        return _with_type(field, ["null", made] if self._may_be_null(all_columns, fields) else made)

    def _may_be_null(self, columns: Sequence[Column], fields: Sequence[dict[str, Any]]) -> bool:
        optional = {name: given.optional for name, given in self._join.input.items()}
        return any(
            is_nullable(field["type"]) and all(flag for name, flag in optional.items() if name != column.input)
            for column, field in zip(columns, fields, strict=True)
        )

    def _own_field(self, column: Column, *, is_optional: bool) -> dict[str, Any]:
        """The field of a column in joined rows. What may be null has null as its first branch."""
        field = self._field(column)
        tree = field["type"]
        if is_nullable(tree) or is_optional:
            tree = nullable(tree, str(column))
        return _with_type({**field, "name": self._renames.get(column, column.name)}, tree)

    def _check_names(self, plan: JoinPlan) -> None:
        """Raise PlanError if two columns have one name."""
        places: dict[str, Column] = {
            target.field["name"]: Column(plan.inputs[0].name, target.column) for target in plan.inputs[0].join
        }
        for given in plan.inputs:
            for target in (*given.ident, *given.columns):
                name, column = target.field["name"], Column(given.name, target.column)
                if name in places:
                    raise PlanError(
                        f"{places[name]} and {column} are both {name!r} in joined rows: give one of them another name "
                        f'in select, as in "{column} as {given.name}_{target.column}"'
                    )
                places[name] = column


def _with_type(field: dict[str, Any], tree: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """The field with another type: null by default if it may be null, otherwise without a default."""
    made = {key: value for key, value in field.items() if key != "default"} | {"type": tree}
    return {**made, "default": None} if isinstance(tree, list) and tree[0] == "null" else made
