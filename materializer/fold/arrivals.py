"""A chunk's decoded messages, whether the native core or the Python code has decoded them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from materializer.records import Arrival, RawRecord, UnreadableError

if TYPE_CHECKING:
    from cdc_native.fold.updates import PlainUpdate

# A message as the Python code has decoded it, or a plain row as the native core has.
AnyArrival: TypeAlias = "Arrival | PlainUpdate"

# What is called for a record whose message cannot be read.
OnUnreadable: TypeAlias = Callable[[RawRecord, UnreadableError], None]

# Of a host that the native core may take messages of: (id, segment, position), if they are after that place.
NativeBoundary: TypeAlias = tuple[bytes, int, int]
