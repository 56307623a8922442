"""A transformers file: what is read of it, and errors that name file and place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_program.errors import CdcError, Code
from local_stack.process.paths import project_root
from tests.support.transformer.definitions import HEAD
from transformer.definition import MaskStep
from transformer.definition_file import load_transformers

if TYPE_CHECKING:
    from pathlib import Path

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
        (HEAD.replace("public", "cdc") + DOCS, ', transformer "one"', "its source and its target are the same"),
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
    assert f'transformer "one", step 1 (mask): the salt_file {tmp_path / "the.salt"}' in error.problem
    assert reason in error.problem


def test_the_example_of_the_docs_is_valid(tmp_path: Path) -> None:
    page = (project_root() / "docs" / "guides" / "transformers.md").read_text()
    file = tmp_path / "transformers.toml"
    file.write_text(page.partition("```toml\n")[2].partition("```")[0])
    (tmp_path / "orders.salt").write_text("salt")
    (made,) = load_transformers(file)
    assert [step.kind for step in made.step] == ["mask", "enum", "flags", "docs"]
