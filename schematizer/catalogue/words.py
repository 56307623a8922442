"""The words that full-text search compares: the same for what is stored and for what is asked, in every database."""

from __future__ import annotations

import re
import unicodedata

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"\w+")
MAX_LENGTH = 200_000
"""Of what is searched of a text, and of its words. PostgreSQL takes at most 1 MiB for all words of a document."""
_MAX_WORD = 64


def words(text: str) -> list[str]:
    """Split a text into words, without case and accents: `orderTotal_net` and `Order total, net` are
    order, total, net.
    """
    plain = text if text.isascii() else _without_accents(text)
    return [word.casefold()[:_MAX_WORD] for word in _WORD.findall(_CAMEL.sub(" ", plain))]


def _without_accents(text: str) -> str:
    return "".join(
        character for character in unicodedata.normalize("NFKD", text) if not unicodedata.combining(character)
    )


def text_words(text: str) -> str:
    return " ".join(words(text[:MAX_LENGTH]))[:MAX_LENGTH]


def name_words(name: str) -> str:
    """Return a name's words, and each part of the name as one word: `order_total` is also found by `ordertotal`."""
    whole = ["".join(words(part)) for part in _NAME.findall(name)]
    return " ".join(dict.fromkeys((*words(name), *(word[:_MAX_WORD] for word in whole if word))))


def first_match(text: str, wanted: list[str]) -> int:
    """Return the position of the first word that begins with one of the wanted; 0 if none does."""
    for found in _WORD.finditer(text):
        if any(word.startswith(tuple(wanted)) for word in words(found[0])):
            return found.start()
    return 0
