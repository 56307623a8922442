"""Words that are nearly another one: what somebody who mistypes a word means."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST = 4
"""Of shorter words too many are near."""
_LONG = 8
_MOST = 2


def edits(word: str) -> int:
    """How many letters of a word may be wrong."""
    return 0 if len(word) < SHORTEST else 1 if len(word) < _LONG else _MOST


def pieces(word: str) -> list[str]:
    """Parts of a word. A word that is near has some of them whole: a wrong letter breaks one, two that are swapped may
    break two.
    """
    count = edits(word) + 2
    size, more = divmod(len(word), count)
    ends = [size * (number + 1) + min(number + 1, more) for number in range(count)]
    return [word[start:end] for start, end in zip([0, *ends], ends, strict=False)]


def nearest(word: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known words that begin with one that is near, the nearest first: then those with its first letter, and the
    shortest. At most so many.
    """
    allowed = edits(word)
    found = []
    for other in set(known):
        if len(other) + allowed < len(word):
            continue
        distance = _distance(word, other[: len(word) + allowed], allowed)
        if distance <= allowed:
            found.append((distance, other[0] != word[0], len(other), other))
    return [other for *_, other in sorted(found)[:most]]


def _distance(word: str, other: str, most: int) -> int:
    """Letters to change, add, remove or swap until the word is a beginning of the other one; more than `most` if it
    needs more.
    """
    earlier: list[int] = []
    last = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        row = [at]
        for place, there in enumerate(other, 1):
            cost = min(row[-1] + 1, last[place] + 1, last[place - 1] + (letter != there))
            if at > 1 and place > 1 and (letter, word[at - 2]) == (other[place - 2], there):
                cost = min(cost, earlier[place - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        earlier, last = last, row
    return min(last)
