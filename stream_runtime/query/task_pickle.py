"""Tasks on their way from the driver to Spark's processes, without the settings in them.

Settings have secrets. They travel once, in the data source, through Spark's channels, which an operator may encrypt.
"""

from __future__ import annotations

import io
import pickle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def dumps(task: object, known: Sequence[object]) -> bytes:
    """The task, with the number of a known object wherever it has one of them (not one that is equal)."""
    file = io.BytesIO()
    _Pickler(file, known).dump(task)
    return file.getvalue()


def loads(task: bytes, known: Sequence[object]) -> Any:  # noqa: ANN401 - what dumps was given
    """The reverse, with the same known objects in the same order."""
    return _Unpickler(io.BytesIO(task), known).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, known: Sequence[object]) -> None:
        super().__init__(file)
        self._numbers = {id(value): number for number, value in enumerate(known)}

    def persistent_id(self, value: object) -> int | None:
        return self._numbers.get(id(value))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[object]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, number: int) -> object:
        return self._known[number]
