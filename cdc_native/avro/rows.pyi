from typing import Protocol

from cdc_native.avro.columns import Table
from cdc_native.avro.messages import Messages

class ArrowRows(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None, /) -> tuple[object, object]: ...

class RowError(ValueError):
    index: int
    reason: str
    def __init__(self, index: int, reason: str) -> None: ...

def write_rows(table: Table, rows: ArrowRows, header: bytes = b"") -> Messages: ...
