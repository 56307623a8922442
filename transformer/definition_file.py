"""Reads a transformers file: TOML. Each error names the file and the place in it."""

from __future__ import annotations

import tomllib
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr, ValidationError

from cdc_program.errors import CdcError, Code
from transformer.definition import MaskStep, Step, Transformer, TransformersFile

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

_FIX = "docs/guides/transformers.md shows the format."


def load_transformers(file: Path) -> tuple[Transformer, ...]:
    """The transformers of the file, with the salts of files read in. CdcError CONFIG_FILE or CONFIG_INVALID."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise CdcError(Code.CONFIG_FILE, f"{file} is not valid TOML: {error}.", "Correct that line.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise CdcError(
            Code.CONFIG_FILE, f"The transformers file {file} cannot be read: {error}.", "Name a readable UTF-8 file."
        ) from error
    try:
        parsed = TransformersFile.model_validate(content)
    except ValidationError as error:
        # Without the cause: pydantic's message repeats the input, which may be a salt.
        raise _invalid(file, content, error.errors(include_url=False)[0]) from None
    return tuple(_with_salts(file, each) for each in parsed.transformer)


def place(transformer: Transformer, step: int) -> str:
    """A step as errors name it: its number from 1; 0 for the transformer itself."""
    kind = f", step {step} ({transformer.step[step - 1].kind})" if step else ""
    return f'transformer "{transformer.name}"{kind}'


def _invalid(file: Path, content: dict[str, Any], error: ErrorDetails) -> CdcError:
    reason = error["msg"].removeprefix("Value error, ")
    where = _place(content, error["loc"])
    return CdcError(Code.CONFIG_INVALID, f"{file}{where} is not valid: {reason}.", _FIX)


def _place(content: Any, location: tuple[int | str, ...]) -> str:  # noqa: ANN401 - TOML
    """The names of transformers instead of their numbers, and steps from 1."""
    parts: list[str] = []
    for part, following in zip_longest(location, location[1:], fillvalue=""):
        if isinstance(part, str) and isinstance(following, int):
            content = content.get(part, [])
            continue
        if isinstance(part, int):
            content = content[part]
            name = content.get("name") if isinstance(content, dict) else None
            kind = content.get("kind") if isinstance(content, dict) else None
            parts.append(f'transformer "{name}"' if name else f"step {part + 1} ({kind})" if kind else f"{part + 1}")
        elif isinstance(content, dict) and part in content:
            content = content[part]
            parts.append(part)
        elif part not in ("mask", "enum", "flags", "docs", "[key]", "list[str]", "literal['pii']"):
            parts.append(str(part))
    return ", " + ", ".join(parts) if parts else ""


def _with_salts(file: Path, transformer: Transformer) -> Transformer:
    steps: list[Step] = []
    for number, step in enumerate(transformer.step, 1):
        if isinstance(step, MaskStep) and step.salt_file is not None:
            salt = _read_salt(file, place(transformer, number), step.salt_file)
            steps.append(step.model_copy(update={"salt": SecretStr(salt)}))
        else:
            steps.append(step)
    return transformer.model_copy(update={"step": steps})


def _read_salt(file: Path, where: str, salt_file: Path) -> str:
    """A path is relative to the transformers file."""
    path = file.parent / salt_file
    try:
        salt = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CdcError(
            Code.CONFIG_FILE,
            f"{file}, {where}: the salt_file {path} cannot be read: {reason}.",
            "Correct the path, or let the program's user read the file.",
        ) from None
    if not salt:
        raise CdcError(Code.CONFIG_INVALID, f"{file}, {where}: the salt_file {path} is empty.", "Write the salt in it.")
    return salt
