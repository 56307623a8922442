"""Derived schemas, and messages under them, as fastavro reads them."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from cdc_common.messages.avro.encoding import encode_bytes
from tests.support.transformer.definitions import transformer
from tests.support.transformer.orders import ENVELOPE, KEY, ORDER, ROW, TOPIC, decode, encode, envelope
from transformer.errors import StepError, TransformError
from transformer.steps.derive import Derived, SourceTopic, derive

STEPS = """
[[transformer.step]]
kind = "mask"
columns = ["email"]
how = "hash"
salt = "secret"
[[transformer.step]]
kind = "mask"
columns = ["home"]
how = "drop"
[[transformer.step]]
kind = "enum"
column = "status"
names = { 0 = "new", 1 = "paid" }
[[transformer.step]]
kind = "flags"
column = "bits"
bits = { is_gift = 0, is_late = 2, is_big = 31 }
[[transformer.step]]
kind = "docs"
table = "Orders without names."
columns = { is_gift = "Whether it is a present.", total = "In cents." }
"""


def source(value: Any = ENVELOPE, key: Any = KEY, pii: frozenset[str] = frozenset()) -> SourceTopic:  # noqa: ANN401
    return SourceTopic(TOPIC, key, value, pii)


def transformed(made: Derived, value: object) -> Any:  # noqa: ANN401 - as above
    return decode(made.value_schema, made.transform_value(encode(ENVELOPE, value)))


def hashed(value: str) -> str:
    return hmac.new(b"secret", encode_bytes(value.encode()), hashlib.sha256).hexdigest()


def test_all_steps_on_both_images() -> None:
    made = derive(transformer(STEPS), source())
    row = {
        "id": 7,
        "email": hashed("ada@example.org"),
        "work": {"city": "London"},
        "status": "paid",
        "is_gift": True,
        "is_late": True,
        "is_big": False,
        "total": 1.5,
    }
    later = {**ORDER, "status": None, "email": None, "bits": -(2**31)}
    later_row = {**row, "status": None, "email": None, "is_gift": False, "is_late": False, "is_big": True}
    assert transformed(made, envelope(ORDER, later, "u")) == envelope(row, later_row, "u")
    assert transformed(made, envelope(None, ORDER, "c")) == envelope(None, row, "c")
    assert transformed(made, envelope(ORDER, None, "d")) == envelope(row, None, "d")


def test_the_key_stays_and_gets_the_targets_names() -> None:
    made = derive(transformer(STEPS), source())
    data = encode(KEY, {"id": 7})
    assert made.transform_key(data) == data
    assert (made.key_schema["namespace"], made.key_schema["name"]) == ("public.shop.orders", "Key")
    assert (made.value_schema["namespace"], made.value_schema["name"]) == ("public.shop.orders", "Envelope")
    assert made.key_schema["sourceTopic"] == made.value_schema["sourceTopic"] == TOPIC


def test_docs_are_carried_and_added() -> None:
    made = derive(transformer(STEPS), source())
    row = made.value_schema["fields"][0]["type"][1]
    docs = {field["name"]: field.get("doc") for field in row["fields"]}
    assert row["doc"] == "Orders without names."
    assert docs["is_gift"] == "Whether it is a present."
    assert docs["is_late"] == "Bit 2 of bits."
    assert docs["total"] == "In cents."


def test_a_type_is_defined_where_it_comes_first() -> None:
    """`address` was defined in a column that is dropped, and is used by one that stays."""
    made = derive(transformer(STEPS), source())
    row = made.value_schema["fields"][0]["type"][1]
    work = next(field for field in row["fields"] if field["name"] == "work")
    assert work["type"][1]["name"] == "address"
    assert work["type"][1]["namespace"] == "public.shop.orders"


@pytest.mark.parametrize(("how", "expected"), [("null", None), ("redact", "***")])
def test_masks(how: str, expected: str | None) -> None:
    steps = f'[[transformer.step]]\nkind = "mask"\nhow = "{how}"\ncolumns = ["email", "bits", "home"]'
    row = transformed(derive(transformer(steps), source()), envelope(None, ORDER, "c"))["after"]
    assert (row["email"], row["bits"], row["home"]) == (expected, expected, expected)
    if how == "redact":
        row = transformed(derive(transformer(steps), source()), envelope(None, {**ORDER, "email": None}, "c"))["after"]
        assert row["email"] is None


def test_personal_columns_are_those_of_the_catalogue() -> None:
    steps = '[[transformer.step]]\nkind = "mask"\nhow = "drop"\ncolumns = "pii"'
    made = derive(transformer(steps), source(pii=frozenset({"email", "home"})))
    assert set(transformed(made, envelope(None, ORDER, "c"))["after"]) == {"id", "work", "status", "bits", "total"}
    assert made.pii == frozenset()


def test_what_is_made_of_a_personal_column_is_personal_unless_it_is_masked() -> None:
    made = derive(transformer(STEPS), source(pii=frozenset({"email", "bits", "work"})))
    assert made.pii == {"work", "is_gift", "is_late", "is_big"}


@pytest.mark.parametrize("by", ["catalogue", "schema"])
def test_what_steps_make_of_a_personal_column_is_masked_with_it(by: str) -> None:
    """Also where a step before the mask has given it another name or another type."""
    steps = """
        [[transformer.step]]
        kind = "flags"
        column = "bits"
        bits = { is_gift = 0, is_late = 2, is_big = 31 }
        [[transformer.step]]
        kind = "enum"
        column = "status"
        names = { 0 = "new", 1 = "paid" }
        [[transformer.step]]
        kind = "mask"
        how = "redact"
        columns = "pii"
    """
    value = json.loads(json.dumps(ENVELOPE))
    for field in value["fields"][0]["type"][1]["fields"]:
        if by == "schema" and field["name"] in ("bits", "status"):
            field["pii"] = True
    made = derive(transformer(steps), source(value, pii=frozenset({"bits", "status"} if by == "catalogue" else ())))
    row = transformed(made, envelope(None, ORDER, "c"))["after"]
    assert {name: row[name] for name in ("is_gift", "is_late", "is_big", "status")} == dict.fromkeys(
        ("is_gift", "is_late", "is_big", "status"), "***"
    )
    assert made.pii == frozenset()


def test_a_column_that_was_dropped_is_masked_in_the_messages_that_have_it() -> None:
    """The newest schema has `mail` instead of `email`: a mask of `email` that finds nothing stops, unless it may."""
    mask = '[[transformer.step]]\nkind = "mask"\ncolumns = ["email"]\nhow = "redact"\n'
    newest = json.loads(json.dumps(ENVELOPE).replace('"email"', '"mail"'))
    with pytest.raises(StepError, match='missing = "ignore"'):
        derive(transformer(mask), source(newest))
    may_be_missing = transformer(f'{mask}missing = "ignore"\n' + mask.replace("email", "mail"))
    made = derive(may_be_missing, source(newest))
    row = {"mail" if name == "email" else name: value for name, value in ORDER.items()}
    now = decode(made.value_schema, made.transform_value(encode(newest, envelope(None, row, "c"))))
    assert now["after"]["mail"] == "***"
    older = derive(may_be_missing, source()._replace(must_exist=False))
    assert transformed(older, envelope(None, ORDER, "c"))["after"]["email"] == "***"


def test_a_key_column_is_hashed_in_key_and_row() -> None:
    steps = '[[transformer.step]]\nkind = "mask"\nhow = "hash"\nsalt = "secret"\ncolumns = ["id"]'
    made = derive(transformer(steps), source())
    key = decode(made.key_schema, made.transform_key(encode(KEY, {"id": 7})))
    assert key["id"] == transformed(made, envelope(None, ORDER, "c"))["after"]["id"]
    assert key["id"] == hmac.new(b"secret", b"\x0e", hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ('kind = "mask"\ncolumns = ["id"]\nhow = "null"', "id is part of the key"),
        ('kind = "mask"\ncolumns = ["id"]\nhow = "drop"', "id is part of the key"),
        ('kind = "mask"\ncolumns = ["mail"]\nhow = "null"', "there is no column mail; the columns are id, email, home"),
        ('kind = "enum"\ncolumn = "email"\nnames = {1 = "a"}', "the column email is string, not an int or a long"),
        ('kind = "flags"\ncolumn = "id"\nbits = {a = 1}', "id is part of the key"),
        ('kind = "flags"\ncolumn = "bits"\nbits = {total = 1}', "there is a column total already"),
        (
            'kind = "flags"\ncolumn = "bits"\nbits = {a = 32}',
            "the column bits has 32 bits, so there is no bit 32 for a",
        ),
        ('kind = "docs"\ncolumns = {x = "y"}', "there is no column x"),
    ],
)
def test_steps_that_do_not_fit(steps: str, reason: str) -> None:
    with pytest.raises(StepError) as caught:
        derive(transformer(f"[[transformer.step]]\n{steps}"), source())
    assert reason in caught.value.reason
    assert caught.value.step == 1


@pytest.mark.parametrize(
    ("steps", "changed"),
    [
        ('kind = "enum"\ncolumn = "status"\nnames = {0 = "new"}', {}),
        ('kind = "flags"\ncolumn = "bits"\nbits = {a = 0}', {}),
    ],
)
def test_an_unknown_number_is_refused_without_its_value(steps: str, changed: dict[str, object]) -> None:
    made = derive(transformer(f"[[transformer.step]]\n{steps}"), source())
    with pytest.raises(TransformError) as caught:
        transformed(made, envelope(None, {**ORDER, **changed}, "c"))
    assert "has no name" in caught.value.reason


def test_an_envelope_whose_images_are_no_rows_is_refused() -> None:
    """Its columns would not be found, and a mask would find nothing to mask."""
    fields = [{**field, "type": "string"} if field["name"] == "after" else field for field in ENVELOPE["fields"]]
    with pytest.raises(StepError, match="looks like a change envelope"):
        derive(transformer(STEPS), source({**ENVELOPE, "fields": fields}))


def test_a_row_that_holds_itself_is_refused() -> None:
    fields = [*ROW["fields"], {"name": "old", "type": ["null", "Value"], "default": None}]
    images = [{"name": "before", "type": ["null", {**ROW, "fields": fields}]}, *ENVELOPE["fields"][1:]]
    with pytest.raises(StepError, match="in places other than before and after"):
        derive(transformer(STEPS), source({**ENVELOPE, "fields": images}))


@pytest.mark.parametrize(("unknown", "expected"), [("null", None), ("keep", "1")])
def test_an_unknown_number_may_be_kept(unknown: str, expected: str | None) -> None:
    steps = f'[[transformer.step]]\nkind = "enum"\ncolumn = "bits"\nnames = {{0 = "new"}}\nunknown = "{unknown}"'
    made = derive(transformer(steps), source())
    assert transformed(made, envelope(None, {**ORDER, "bits": 1}, "c"))["after"]["bits"] == expected
    assert transformed(made, envelope(None, {**ORDER, "bits": 0}, "c"))["after"]["bits"] == "new"


@pytest.mark.parametrize("cut", range(1, 30))
def test_bytes_of_another_schema_are_refused(cut: int) -> None:
    data = encode(ENVELOPE, envelope(None, ORDER, "c"))
    made = derive(transformer('[[transformer.step]]\nkind = "docs"\ntable = "x"'), source())
    assert made.transform_value(data) == data
    with pytest.raises(TransformError):
        made.transform_value(data[:-cut])
    with pytest.raises(TransformError):
        made.transform_value(data + b"\0" * cut)
