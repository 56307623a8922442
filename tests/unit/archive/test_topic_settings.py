"""Settings of single topics."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from archive.records import Definition
from archive.settings import ArchiveSettings
from archive.table_names import main_table, table_name, table_of_form, versioned


def test_the_last_entry_counts() -> None:
    entries = [
        r"cdc\..* layout=hive bucket=day on_error=skip",
        "cdc.shop.orders layout=iceberg table=sales.all_orders event_time=paid_at|a.b tombstones=keep",
        "other on_error=dead_letter format=json subject=others",
    ]
    own = ArchiveSettings(topic_settings=entries)
    times = tuple(own.event_time)
    assert own.definition_of("cdc.shop.users") == Definition(
        "cdc_shop.users", "hive", "day", times, on_error="skip", subject="cdc.shop.users-value"
    )
    assert own.definition_of("cdc.shop.orders") == Definition(
        "sales.all_orders", "iceberg", "day", ("paid_at", "a.b"), "keep", "skip", subject="cdc.shop.orders-value"
    )
    other = own.definition_of("other")
    assert (other.on_error, other.format, other.subject) == ("dead_letter", "json", "others")
    assert own.definition_of("another") == ArchiveSettings().definition_of("another")
    assert own.sends_dead_letters
    assert not own.model_copy(update={"topic_settings": entries[:2]}).sends_dead_letters


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("cdc.shop.orders", "no setting"),
        ("", "no setting"),
        ("orders layout=orc", "layout is iceberg or hive"),
        ("orders layouts=hive", "is none of layout="),
        ("orders table=Orders", "a table has a namespace"),
        ("orders event_time=", "is none of"),
        ("or(ders layout=hive", "no regular expression"),
    ],
)
def test_an_entry_that_is_not_understood(entry: str, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ArchiveSettings(topic_settings=[entry])


def test_no_schema_version_has_the_name_of_another_table() -> None:
    """cdc.shop.orders-v2 is what the materializer calls a topic with another key."""
    topics = ["cdc.shop.orders", "cdc.shop.orders-v2", "cdc.shop.orders--v2"]
    tables = {topic: table_name(topic, "topics") for topic in topics}
    assert versioned(tables["cdc.shop.orders"], 2) != tables["cdc.shop.orders-v2"]
    assert main_table(tables["cdc.shop.orders--v2"]) == main_table(tables["cdc.shop.orders"])
    assert main_table(table_of_form(tables["cdc.shop.orders"], "erasures")) == tables["cdc.shop.orders"]
    assert main_table(tables["cdc.shop.orders-v2"]) != main_table(tables["cdc.shop.orders"])
