"""The native core: compiled code for plain rows. Its results equal those of the Python code, byte for byte.

It reads and writes bytes, and makes no Python object for a cell. A function returns None for what it does not take. The
caller then runs the Python code, which is also what the core's tests compare with. Without a compiled core the programs
use the Python code alone. The environment variable CDC_NATIVE=0 switches the core off for a process.
"""

from __future__ import annotations

import importlib.util
import os
from importlib.machinery import ExtensionFileLoader


def is_compiled() -> bool:
    """Whether the compiled modules are installed: a build has all of them, or none."""
    spec = importlib.util.find_spec("cdc_native.formats.vints")
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)


def is_enabled() -> bool:
    """Whether this process is to use the core: it is compiled, and CDC_NATIVE is not 0."""
    return os.environ.get("CDC_NATIVE") != "0" and is_compiled()
