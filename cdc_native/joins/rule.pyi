from collections.abc import Iterable

class Rule:
    def __init__(
        self,
        inputs: Iterable[tuple[bool, bytes, bytes, bytes]],
        most_rows: int,
        headers: tuple[bytes, bytes],
        source: bytes,
        definition: int = 0,
    ) -> None: ...
