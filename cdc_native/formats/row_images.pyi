from cdc_native.formats.sstables import RowShapes

class RowImages:
    units: int
    def __init__(self, shapes: RowShapes, table_id: bytes, begin: bytes, middle: bytes, segment: bytes) -> None: ...
