"""A transformers file: what is read of it, and errors that name file and place."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.paths import project_root
from tests.support.transformer.definitions import HEAD
from transformer.definition import MaskStep
from transformer.definition_file import load_transformers, parse_transformers

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = '[[transformer.step]]\nkind = "docs"\ntable = "x"\n'
SECOND = (
    '[[transformer]]\nname = "two"\nsource = { namespace = "public.shop", source = "orders" }\n'
    'target = { namespace = "cdc.shop", source = "orders" }\n'
)


def error_of(folder: Path, text: str) -> CdcError:
    file = folder / "transformers.toml"
    file.write_text(text)
    with pytest.raises(CdcError) as caught:
        load_transformers(file)
    assert str(file) in caught.value.problem
    return caught.value


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", ", transformer", "Field required"),
        ("transformer = []", "", "it has no transformer"),
        (HEAD, ', transformer "one", step', "Field required"),
        (HEAD + "step = []", ', transformer "one"', "it has no step"),
        (HEAD + DOCS + "colums = {}", ', transformer "one", step 1 (docs), colums', "Extra inputs"),
        (HEAD + '[[transformer.step]]\nkind = "docs"', ', transformer "one", step 1 (docs)', "there is nothing in it"),
        (HEAD + '[[transformer.step]]\nkind = "mash"', ', transformer "one", step 1 (mash)', "'mask', 'enum'"),
        (
            HEAD + DOCS + '[[transformer.step]]\nkind = "flags"\ncolumn = "a"\nbits = {x = 1, y = 1}',
            ', transformer "one", step 2 (flags), bits',
            "the bit 1 is there twice",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "flags"\ncolumn = "a"\nbits = {x = 64}',
            ', transformer "one", step 1 (flags), bits, x',
            "less than or equal to 63",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "flags"\ncolumn = "a"\nbits = {"1x" = 1}',
            ', transformer "one", step 1 (flags), bits',
            "'1x' is no name of an Avro field",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "enum"\ncolumn = "a"\nnames = {1 = "x", 2 = "x"}',
            ', transformer "one", step 1 (enum), names',
            "the name 'x' is there twice",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "enum"\ncolumn = "a"\nnames = {1 = "2"}\nunknown = "keep"',
            ', transformer "one", step 1 (enum)',
            "the name '2' looks like a number that is kept",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "enum"\ncolumn = "a"\nnames = {one = "x"}',
            ', transformer "one", step 1 (enum), names',
            "'one' is not a number of 64 bits",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "mask"\ncolumns = ["a", "a"]\nhow = "null"',
            ', transformer "one", step 1 (mask)',
            "the column 'a' is there twice",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "mask"\ncolumns = "pii"\nhow = "hash"',
            ', transformer "one", step 1 (mask)',
            "hash needs either salt_file or salt",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "mask"\ncolumns = "pii"\nhow = "null"\nsalt = "s3cret"',
            ', transformer "one", step 1 (mask)',
            "null takes no salt",
        ),
        (
            HEAD + '[[transformer.step]]\nkind = "mask"\ncolumns = "pii"\nhow = "hash"\nsalt = " "',
            ', transformer "one", step 1 (mask)',
            "the salt is empty, so anyone could undo the hash",
        ),
        (HEAD.replace("public", "cdc") + DOCS, ', transformer "one"', "its source and its target are the same"),
        (
            HEAD.replace('source = "orders" }', 'source = "orders-v2" }') + DOCS,
            ', transformer "one", target, source',
            "'orders-v2' ends as a later topic of 'orders' does",
        ),
        (HEAD + DOCS + HEAD + DOCS, "", "the transformer 'one' is there twice"),
        (HEAD + DOCS + SECOND + DOCS, "", "public.shop.orders is made from itself"),
        (HEAD + DOCS + SECOND.replace("cdc.", "public.").replace("public.shop", "x.y", 1) + DOCS, "", "the target"),
    ],
)
def test_errors_name_the_place(tmp_path: Path, text: str, place: str, reason: str) -> None:
    error = error_of(tmp_path, text)
    assert error.code is Code.CONFIG_INVALID
    assert f"transformers.toml{place} is not valid: " in error.problem
    assert reason in error.problem
    assert "s3cret" not in error.problem


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    assert "(at line 1, column 13)" in error_of(tmp_path, "transformer x").problem
    with pytest.raises(CdcError, match=r"missing\.toml cannot be read"):
        load_transformers(tmp_path / "missing.toml")


HASHED = HEAD + '[[transformer.step]]\nkind = "mask"\ncolumns = "pii"\nhow = "hash"\nsalt_file = "the.salt"'


def test_a_salt_is_read_from_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "the.salt").write_text("s3cret\n")
    file = tmp_path / "transformers.toml"
    file.write_text(HASHED)
    (made,) = load_transformers(file)
    assert isinstance(made.step[0], MaskStep)
    assert made.step[0].salt is not None
    assert made.step[0].salt.get_secret_value() == "s3cret"
    assert "s3cret" not in repr(made)


@pytest.mark.parametrize(("content", "reason"), [(None, "No such file"), ("\n", "is empty")])
def test_a_salt_that_cannot_be_used(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "the.salt").write_text(content)
    error = error_of(tmp_path, HASHED)
    assert f"The file {tmp_path / 'the.salt'}, named by salt_file in" in error.problem
    assert 'transformers.toml, transformer "one", step 1 (mask)' in error.problem
    assert reason in error.problem


def test_a_salt_file_whose_name_no_file_can_have(tmp_path: Path) -> None:
    error = error_of(tmp_path, HASHED.replace("the.salt", "the\\u0000salt"))
    assert error.code is Code.CONFIG_FILE
    assert "its name holds a null byte" in error.problem


WHOLE = f"""{HEAD}
[[transformer.step]]
kind = "mask"
columns = ["a"]
how = "hash"
salt = "s3cret"
[[transformer.step]]
kind = "enum"
column = "s"
names = {{ 0 = "new", 1 = "paid" }}
[[transformer.step]]
kind = "flags"
column = "f"
bits = {{ x = 0, y = 3 }}
[[transformer.step]]
kind = "docs"
columns = {{ x = "y" }}
"""
ODD = st.sampled_from(
    (0, 1.5, True, "", "pii", "mask", "a\n", [], {}, [1], [[]], [{}], ["a", "a"], {"a": 1}, {"kind": "mask"}, 10**30)
)


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - TOML
    """The ways to all that it holds."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*before, key)
        yield from places(inner, (*before, key))


def error_in(content: dict[str, Any]) -> CdcError | None:
    try:
        parse_transformers(content, Path("transformers.toml"))
    except CdcError as error:
        return error
    return None


@given(st.lists(st.tuples(st.sampled_from(list(places(tomllib.loads(WHOLE)))), ODD), min_size=1, max_size=3))
@example([(("transformer", 0, "step", 0, "columns"), [1])])
def test_whatever_is_wrong_is_an_error_of_its_own(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    """Values of other types anywhere. No error shows the salt."""
    content = tomllib.loads(WHOLE)
    for place, value in changes:
        with suppress(LookupError, TypeError):  # an earlier change has replaced what holds it
            reduce(lambda holder, key: holder[key], place[:-1], content)[place[-1]] = value
    error = error_in(content)
    assert error is None or error.code is Code.CONFIG_INVALID
    assert "s3cret" not in str(error)


def test_the_example_of_the_docs_is_valid(tmp_path: Path) -> None:
    page = (project_root() / "docs" / "guides" / "transformers.md").read_text()
    file = tmp_path / "transformers.toml"
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    (tmp_path / "orders.salt").write_text("salt")
    (made,) = load_transformers(file)
    assert [step.kind for step in made.step] == ["mask", "enum", "flags", "docs"]
