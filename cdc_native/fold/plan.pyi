from collections.abc import Sequence
from typing import Any, TypeAlias

from cdc_native.formats.keys import KeyForm

TypeForm: TypeAlias = tuple[str, int, int, tuple[Any, ...]] | tuple[str, int, int, tuple[Any, ...], tuple[bytes, ...]]

class Plan:
    table_id: bytes
    digest: bytes
    has_messages: bool
    def __init__(
        self,
        table_id: bytes,
        digest: bytes,
        columns: Sequence[tuple[bytes, int, KeyForm | None, int | None]],
        statics: Sequence[tuple[bytes, int, KeyForm | None, int | None]],
        clustering: Sequence[tuple[int, KeyForm, TypeForm]],
        partition_key: Sequence[TypeForm],
        fields: Sequence[tuple[bool, int, TypeForm, TypeForm, int | None, bytes, bytes]],
        message: tuple[bytes, bytes, bytes, bytes, bytes, bool] | None,
    ) -> None: ...
