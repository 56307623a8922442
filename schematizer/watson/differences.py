"""Differences between two schemas, field by field, in words."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cdc_common.clients.registry.views import Element

NO_DOCS = "no docs"


class Kind(StrEnum):
    ADDED = "added"
    REMOVED = "removed"
    TYPE = "type changed"
    DOC = "docs changed"
    ORDER = "order changed"


class Difference(NamedTuple):
    """A difference between two versions of a schema."""

    # The kind of difference.
    kind: Kind
    # The field's path.
    path: str
    # The type or the doc before; None where the field was not there.
    before: str | None
    # The type or the doc after; None where the field is not there.
    after: str | None


def differences(before: Sequence[Element], after: Sequence[Element]) -> list[Difference]:
    """Return the differences in the order of the fields of `after`, removed ones last. A renamed field is removed and
    added.
    """
    old = {element.path: element for element in before}
    new = {element.path: element for element in after}
    found: list[Difference] = []
    for path, element in new.items():
        known = old.get(path)
        if known is None:
            found.append(Difference(Kind.ADDED, path, None, type_words(element)))
            continue
        if type_words(known) != type_words(element):
            found.append(Difference(Kind.TYPE, path, type_words(known), type_words(element)))
        if (known.doc or "") != (element.doc or ""):
            found.append(Difference(Kind.DOC, path, known.doc or NO_DOCS, element.doc or NO_DOCS))
    found += [Difference(Kind.REMOVED, path, type_words(old[path]), None) for path in old.keys() - new.keys()]
    if not found and list(old) != list(new):
        found.append(Difference(Kind.ORDER, "", ", ".join(old), ", ".join(new)))
    return sorted(found, key=lambda difference: difference.kind is Kind.REMOVED)


def type_words(element: Element) -> str:
    """The type in the source's words and in Avro's: `decimal (bytes), may be null`."""
    own = element.source_type
    text = f"{own} ({element.type})" if own and own != element.type else element.type
    return f"{text}, may be null" if element.is_nullable else text
