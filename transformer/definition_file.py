"""Reads a transformers file: TOML. Each error names the file and the place in it."""

from __future__ import annotations

import tomllib
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr, ValidationError

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.secret_file import read_secret
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
    return parse_transformers(content, file)


def parse_transformers(content: dict[str, Any], file: Path) -> tuple[Transformer, ...]:
    """The transformers of what a file holds. CdcError CONFIG_FILE (of a salt file) or CONFIG_INVALID."""
    try:
        parsed = TransformersFile.model_validate(content)
    except ValidationError as error:
        # Without the cause: pydantic's message repeats the input, which may be a salt.
        raise _invalid(file, content, error.errors(include_url=False)[0]) from None
    return tuple(_with_salts(file, transformer) for transformer in parsed.transformer)


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
        inner = _item(content, part)
        if isinstance(part, str) and isinstance(following, int):
            content = inner
        elif isinstance(part, int):
            content = inner
            name, kind = _item(content, "name"), _item(content, "kind")
            parts.append(f'transformer "{name}"' if name else f"step {part + 1} ({kind})" if kind else f"{part + 1}")
        elif inner is not None:
            content = inner
            parts.append(part)
        elif part not in ("mask", "enum", "flags", "docs", "[key]", "list[str]", "literal['pii']"):
            parts.append(str(part))
    return ", " + ", ".join(parts) if parts else ""


def _item(content: Any, part: int | str) -> Any:  # noqa: ANN401 - TOML
    """The item of a table or an array; None if it has no such item, or is neither."""
    try:
        return content[part]
    except (LookupError, TypeError):
        return None


def _with_salts(file: Path, transformer: Transformer) -> Transformer:
    """A path is relative to the transformers file."""
    steps: list[Step] = []
    for number, step in enumerate(transformer.step, 1):
        if isinstance(step, MaskStep) and step.salt_file is not None:
            named_by = f"salt_file in {file}, {place(transformer, number)}"
            salt = read_secret(file.parent / step.salt_file, named_by)
            steps.append(step.model_copy(update={"salt": SecretStr(salt)}))
        else:
            steps.append(step)
    return transformer.model_copy(update={"step": steps})
