from collections.abc import Iterable

from cdc_native.avro.messages import Messages
from cdc_native.avro.program import Program

class Keys:
    program: Program
    def __init__(self, program: Program, paths: Iterable[tuple[str, ...]]) -> None: ...
    def apply(self, messages: Messages, skipped: int = 0) -> Messages: ...

def partitions(messages: Messages, count: int) -> bytes: ...
