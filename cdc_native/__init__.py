"""The native core: compiled twins of the Python code on the way of plain rows, equal to it byte for byte.

Bytes go in, bytes come out, and no Python object is made for a cell. A function returns None for what it does not take;
the caller then runs the Python code, which is also the oracle of the core's tests. Without a compiled core the programs
run on the Python code alone; the environment variable CDC_NATIVE=0 makes a process do so although it is compiled.
"""

from __future__ import annotations

import importlib.util
import os
from importlib.machinery import ExtensionFileLoader


def is_compiled() -> bool:
    """Whether the compiled modules are installed: a build has all of them, or none."""
    spec = importlib.util.find_spec("cdc_native.vints")
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def is_enabled() -> bool:
    """Whether this process is to use the core: it is compiled, and CDC_NATIVE is not 0."""
    return os.environ.get("CDC_NATIVE") != "0" and is_compiled()
