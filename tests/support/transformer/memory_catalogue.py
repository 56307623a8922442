"""A registry in memory, as far as transformers ask one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdc_common.errors.codes import CdcError, Code
from tests.support.transformer.orders import ENVELOPE, KEY, TOPIC
from transformer.routing.registered import Newest, Registered

if TYPE_CHECKING:
    from transformer.definition import CatalogueSource, Transformer
    from transformer.routing.registered import Part
    from transformer.steps.derive import Derived

KEY_ID, VALUE_ID = 1, 2


class MemoryCatalogue:
    """Gives each registered pair the next ids. error: what each question is answered with. refused: sources that may
    not be read. of_others: the ids of other topics' schemas. versions: by id, if they are not in the order of ids.
    """

    knows_personal = True

    def __init__(self) -> None:
        self.schemas: dict[int, Any] = {KEY_ID: KEY, VALUE_ID: ENVELOPE}
        self.topic_names = [TOPIC]
        self.value_id = VALUE_ID
        self.pii: frozenset[str] = frozenset()
        self.registered: list[Derived] = []
        self.of_others: set[int] = set()
        self.versions: dict[int, int] = {}
        self.newest_asked = 0
        self.error: CdcError | None = None
        self.refused: set[str] = set()

    def topics(self, place: CatalogueSource) -> list[str]:
        self._answer()
        if place.source in self.refused:
            raise CdcError(Code.REGISTRY_REFUSED, f"{place} may not be read.", "Ask for the role.")
        return list(self.topic_names)

    def newest(self, _topic: str) -> Newest | None:
        self._answer()
        self.newest_asked += 1
        return Newest(self.value_id, KEY, self.schema(self.value_id))

    def schema(self, schema_id: int) -> Any:  # noqa: ANN401 - JSON
        self._answer()
        return json.loads(json.dumps(self.schemas[schema_id]))

    def version(self, _topic: str, _part: Part, schema_id: int) -> int | None:
        self._answer()
        if schema_id not in self.schemas or schema_id in self.of_others:
            return None
        return self.versions.get(schema_id, schema_id)

    def personal(self, _place: CatalogueSource) -> frozenset[str]:
        self._answer()
        return self.pii

    def register(self, _transformer: Transformer, derived: Derived) -> Registered:
        self._answer()
        self.registered.append(derived)
        return Registered("public.shop.orders", 100, 100 + len(self.registered))

    def close(self) -> None: ...

    def _answer(self) -> None:
        if self.error is not None:
            raise self.error
