"""Reads a joins file, or a case for one: TOML. Each error names the file and the place in it."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from cdc_common.errors.codes import CdcError, Code
from joinery.definition import JoinsFile

if TYPE_CHECKING:
    from pathlib import Path

    from joinery.definition import Join

M = TypeVar("M", bound=BaseModel)
_FIX = "docs/guides/joins.md shows the format."


def load_joins(file: Path) -> tuple[Join, ...]:
    """The joins of the file. CdcError CONFIG_FILE or CONFIG_INVALID."""
    return tuple(load(file, "joins file", JoinsFile).join)


def load(file: Path, what: str, model: type[M]) -> M:
    """The content of a TOML file. what: the file's kind, for errors. CdcError CONFIG_FILE or CONFIG_INVALID."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CdcError(Code.CONFIG_FILE, f"{file} is not valid TOML: {error}.", "Correct that line.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CdcError(
            Code.CONFIG_FILE, f"The {what} {file} cannot be read: {error}.", "Name a readable UTF-8 file."
        ) from error
    try:
        return model.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = first["msg"].removeprefix("Value error, ")
        where = _place(content, first["loc"])
        raise CdcError(Code.CONFIG_INVALID, f"{file}{where} is not valid: {reason}.", _FIX) from error


def _place(content: dict[str, Any], location: tuple[int | str, ...]) -> str:
    """The place of an error: a join by its name, or by its number from 1 if it has none."""
    parts = [str(part) for part in location if part != "[key]"]
    if len(location) > 1 and location[0] == "join" and isinstance(location[1], int):
        join = content["join"][location[1]]
        name = join.get("name") if isinstance(join, dict) else None
        parts[:2] = [f'join "{name}"' if name else f"join {location[1] + 1}"]
    return ", " + ", ".join(parts) if parts else ""
