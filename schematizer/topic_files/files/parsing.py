"""Reads a file of TOML, JSON or YAML into its model, and says in one line what is wrong with it."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from pydantic import ValidationError

from schematizer.topic_files.files.base import FileModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUFFIXES = (".toml", ".json", ".yaml", ".yml")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

M = TypeVar("M", bound=FileModel)


class FileError(ValueError):
    """A file that cannot be read. `reasons`: a line for each thing that is wrong."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("; ".join(reasons))
        self.reasons = reasons


def read_model(path: Path, model: type[M]) -> M:
    """FileError."""
    try:
        return model.model_validate(_parsed(path))
    except ValidationError as error:
        raise FileError(list(_problems(error))) from error
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise FileError([" ".join(str(error).split())]) from error


def files_named(folder: Path, stem: str) -> list[Path]:
    """The files of a folder with this name and one of SUFFIXES."""
    return [path for suffix in SUFFIXES if (path := folder / f"{stem}{suffix}").is_file()]


def _parsed(path: Path) -> Any:  # noqa: ANN401 - of any file
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        return tomllib.loads(text)
    if path.suffix == ".json":
        return json.loads(text)
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe loader


def _problems(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        where = ".".join(map(str, problem["loc"]))
        yield f"{where}: {problem['msg']}" if where else problem["msg"]
