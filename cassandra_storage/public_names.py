"""The public names of a package: each is loaded with its module when it is first used (PEP 562)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def loader(package: str, modules: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The package's `__getattr__`. `modules` has the names that each module defines; AttributeError for any other."""

    def load(name: str) -> object:
        for module, names in modules.items():
            if name in names:
                return getattr(import_module(f"{package}.{module}"), name)
        raise AttributeError(name)

    return load
