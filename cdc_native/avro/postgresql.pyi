from collections.abc import Container

from cdc_native.avro.rows import ArrowRows

class CopyError(ValueError):
    index: int
    column: int
    def __init__(self, index: int, column: int) -> None: ...

def copy_rows(rows: ArrowRows, uuids: Container[int] = ()) -> bytes: ...
