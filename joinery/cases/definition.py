"""The definition of a case: the tables of a case's file."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

DELETE = "delete"

_Row: TypeAlias = dict[str, Any]


class Part(BaseModel):
    """An unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class CaseInput(Part):
    """The rows of an input."""

    # The columns of its primary key.
    key: Annotated[list[str], Field(min_length=1)]
    # The Avro type of each column: a name, with "?" if it may be null; or a type as a table or a list.
    columns: Annotated[dict[str, Any], Field(min_length=1)]

    @model_validator(mode="after")
    def _check(self) -> CaseInput:
        if missing := [name for name in self.key if name not in self.columns]:
            raise ValueError(f"its key has {missing[0]}, which is none of its columns")
        return self

    def types(self) -> dict[str, Any]:
        """The Avro type of each column, as JSON."""
        return {name: _type_of(given) for name, given in self.columns.items()}


class Change(Part):
    """A change of an input's row."""

    # The name of the input.
    input: str
    # The row after the change; of a deletion, its primary key.
    row: _Row
    # Whether the row is deleted.
    is_delete: bool

    def __str__(self) -> str:
        return f"{self.input} {'deleted ' if self.is_delete else ''}"


class Case(Part):
    """The changes of a case, in order."""

    # The name of the join; None in a file that has only one.
    join: str | None = None
    # The inputs, by their names in the join.
    input: Annotated[dict[str, CaseInput], Field(min_length=2)]
    # The changes: { INPUT = ROW }, or { INPUT = PRIMARY KEY, delete = true }.
    changes: list[Change]
    # The joined rows that there must be at the end, in any order; None if that is not checked.
    expected: list[_Row] | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_changes(cls, content: Any) -> Any:  # noqa: ANN401 - TOML
        changes = content.get("changes", [])
        if not isinstance(changes, list):
            raise ValueError("changes is not a list")  # noqa: TRY004 - pydantic's
        inputs = content.get("input", {})
        return {**content, "changes": [_change(number, given, inputs) for number, given in enumerate(changes, 1)]}


def _change(number: int, given: Any, inputs: Any) -> dict[str, Any]:  # noqa: ANN401 - TOML
    """A change as the file has it. number: counted from 1."""
    if not isinstance(given, dict):
        raise ValueError(f"change {number} is not a table")  # noqa: TRY004 - pydantic's
    names = [name for name in given if name != DELETE]
    if len(names) != 1 or names[0] not in inputs:
        raise ValueError(f"change {number} names {names or 'no input'}, and one of {', '.join(inputs)} is wanted")
    return {"input": names[0], "row": given[names[0]], "is_delete": given.get(DELETE, False)}


def _type_of(given: Any) -> Any:  # noqa: ANN401 - TOML
    if isinstance(given, str) and given.endswith("?"):
        return ["null", given[:-1]]
    return given
