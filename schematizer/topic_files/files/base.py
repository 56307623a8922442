"""The base of all models of the files."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class FileModel(BaseModel):
    """A table of a file. A key that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Text = Annotated[str, Field(min_length=1)]
Word = Annotated[str, Field(pattern=r"^\S+$")]
"""A text without white space."""
Count = Annotated[int, Field(ge=1)]
