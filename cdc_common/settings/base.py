"""The base of every table of cdc.toml."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, get_origin

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError


class Conflict(NamedTuple):
    """A setting that is valid by itself and has no effect beside others."""

    # The setting, as `table.key`.
    name: str
    # Why it has no effect.
    why: str
    # The fix for the user.
    fix: str


class Table(BaseModel):
    """One table of cdc.toml; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _from_text(cls, value: object, info: ValidationInfo) -> object:
        """Environment and flags carry only text: `a,b` is a list, and an empty text is None where None is allowed. A
        list in JSON would be one item with brackets. No path is empty: that would be the program's working directory.
        """
        field = cls.model_fields[info.field_name or ""]
        if value == "" and field.default is None:
            return None
        if value == "" and field.annotation is Path:
            raise PydanticCustomError("empty", "It must not be empty")
        if isinstance(value, str) and get_origin(field.annotation) is list:
            if value.lstrip().startswith('["'):
                raise PydanticCustomError("list", "A list is a,b here, without brackets and quotes")
            return [item.strip() for item in value.split(",") if item.strip()]
        return value
