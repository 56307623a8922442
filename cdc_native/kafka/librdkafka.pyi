class LibrdkafkaError(Exception):
    code: int
    text: str
    is_fatal: bool
    is_retriable: bool
    requires_abort: bool
    def __init__(
        self,
        code: int,
        text: str,
        is_fatal: bool = False,
        is_retriable: bool = False,
        requires_abort: bool = False,
    ) -> None: ...
