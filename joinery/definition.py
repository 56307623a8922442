"""The definition of a join: the tables of a joins file.

The classes check what can be checked without the inputs' schemas: names, and what belongs together.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from cdc_common.messages.topics import check_unversioned
from joinery.conditions import Column, Selected, join_columns, parse_condition, parse_selection
from joinery.filters import Filter, parse_filter

MOST_INPUTS = 16

_Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=64)]


class Part(BaseModel):
    """An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CatalogueSource(Part):
    """A source of the Schematizer's catalogue."""

    # The name of the namespace.
    namespace: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$")]
    # The name of the source.
    source: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]

    def __str__(self) -> str:
        return f"{self.namespace}.{self.source}"


class Input(CatalogueSource):
    """A source whose rows are joined."""

    # Whether joined rows may lack a row of it, as in an outer join.
    optional: bool = False
    # Filters, such as `total >= 10`: the input has only the rows that pass all of them.
    where: list[str] = []

    @model_validator(mode="after")
    def _check(self) -> Input:
        self.filters()
        return self

    def filters(self) -> list[Filter]:
        """The filters. ValueError."""
        return [parse_filter(text) for text in self.where]


class Target(CatalogueSource):
    """The source that a join writes."""

    # The owner that the catalogue shows; by default that of the first input.
    owner: str | None = None
    # The documentation that the catalogue shows.
    doc: str | None = None

    @field_validator("source")
    @classmethod
    def _check_source(cls, source: str) -> str:
        return check_unversioned(source)


class Join(Part):
    """A join of inputs by one join key."""

    # Its name, which is part of its consumer groups and of its internal topic.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)]
    # The inputs, by the names that `on` and `select` use.
    input: Annotated[dict[_Name, Input], Field(min_length=2, max_length=MOST_INPUTS)]
    # The conditions, such as `o.user_id = u.id`.
    on: Annotated[list[str], Field(min_length=1)]
    # The columns, such as `o.total`, `u.name as user_name` or `o.*`; by default all columns of all inputs.
    select: list[str] = []
    # The source that it writes.
    target: Target
    # The number of joined rows that one change of an input may change at most.
    most_rows: Annotated[int, Field(ge=1)] = 1_000_000

    @model_validator(mode="after")
    def _check(self) -> Join:
        if str(self.target) in map(str, self.input.values()):
            raise ValueError(f"its target {self.target} is one of its inputs")
        self.columns()
        self.selected()
        return self

    def columns(self) -> list[dict[str, str]]:
        """The columns of the join key: each has the name of a column of each input. ValueError."""
        return join_columns(list(self.input), [parse_condition(text) for text in self.on])

    def selected(self) -> list[Selected]:
        """The selected columns. ValueError."""
        wanted = [parse_selection(text) for text in self.select or [f"{name}.*" for name in self.input]]
        for selected in wanted:
            if selected.column.input not in self.input:
                raise ValueError(f"select names {selected.column}, and there is no input {selected.column.input!r}")
        twice = [column for column, count in Counter(selected.column for selected in wanted).items() if count > 1]
        if twice:
            raise ValueError(f"select has {twice[0]} twice")
        return wanted

    def renames(self) -> dict[Column, str]:
        """The columns with another name in the joined row."""
        return {selected.column: selected.name for selected in self.selected() if selected.name is not None}


class JoinsFile(Part):
    """All of a file. A join may read the target of another one, without a circle."""

    # The joins.
    join: Annotated[list[Join], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> JoinsFile:
        _check_unique([join.name for join in self.join], "join")
        _check_unique([str(join.target) for join in self.join], "target")
        _check_no_circle({str(join.target): {str(given) for given in join.input.values()} for join in self.join})
        return self


def _check_unique(values: list[str], what: str) -> None:
    twice = [value for value, count in Counter(values).items() if count > 1]
    if twice:
        raise ValueError(f"the {what} {twice[0]!r} is there twice")


def _check_no_circle(inputs: dict[str, set[str]]) -> None:
    """Raise ValueError if a target is made from itself, in any number of steps."""
    for target, own in inputs.items():
        found, seen = list(own), set[str]()
        while found:
            source = found.pop()
            if source == target:
                raise ValueError(f"{target} is made from itself")
            if source not in seen:
                seen.add(source)
                found += inputs.get(source, ())
