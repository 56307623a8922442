"""Words that are near another one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schematizer.catalogue.near_words import edits, nearest, pieces

WORDS = st.text("abcdefgh", min_size=4, max_size=14)


@pytest.mark.parametrize(
    ("word", "known", "found"),
    [
        ("custmer", ["customer", "customers", "costume"], ["customer", "customers"]),
        ("cutsomer", ["customer"], ["customer"]),
        ("amuont", ["amount", "amounts", "mount"], ["amount", "amounts"]),
        ("adress", ["address", "dress"], ["address", "dress"]),
        ("emali", ["email", "emails"], ["email", "emails"]),
        ("tax", ["tex"], []),
        ("total", ["tonal", "tool"], ["tonal"]),
    ],
)
def test_the_nearest_first(word: str, known: list[str], found: list[str]) -> None:
    assert nearest(word, known) == found


def test_letters_that_changed_places_in_the_middle_of_a_short_word_leave_a_piece() -> None:
    for word, other in (("abcde", "abdce"), ("abcd", "acbd"), ("abcdefgh", "abcdfegh")):
        assert any(piece in other for piece in pieces(word)), word


@given(WORDS, st.data())
def test_one_edit_is_near(word: str, data: st.DataObject) -> None:
    """A letter that is wrong, lacks, is too many, or has changed places with the next one."""
    at = data.draw(st.integers(0, len(word) - 2))
    kind = data.draw(st.sampled_from(["change", "remove", "add", "swap"]))
    other = {
        "change": f"{word[:at]}z{word[at + 1 :]}",
        "remove": word[:at] + word[at + 1 :],
        "add": f"{word[:at]}z{word[at:]}",
        "swap": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
    }[kind]
    assert nearest(word, [other]) == [other]
    assert any(piece in other for piece in pieces(word)), "the database finds it by a piece"


@given(WORDS)
def test_pieces_are_the_word(word: str) -> None:
    assert "".join(pieces(word)) == word
    assert all(pieces(word))
    assert len(pieces(word)) > edits(word)
