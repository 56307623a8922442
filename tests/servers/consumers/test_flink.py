"""Flink SQL reads every type from a change topic, in the default forms and in the exact ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from tests.support.consumers.typed_topic import expected_rows, write_topic
from tests.support.consumers.wide_table import NAMES, wide_messages

if TYPE_CHECKING:
    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.consumers.flink_sql import Flink
    from tests.support.schematizer.registry_process import Registry

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]


@pytest.mark.parametrize("forms", [DEFAULT_FORMS, EXACT], ids=["default", "exact"])
def test_every_type_is_read(
    flink: Flink, kafka: KafkaBroker, shared_registry: Registry, topic_prefix: str, forms: TypeForms
) -> None:
    messages = wide_messages(forms)
    topic = write_topic(kafka.bootstrap_servers, shared_registry, f"{topic_prefix}.types", messages)
    assert flink.rows(topic) == expected_rows(messages)


def test_functions_read_decimals_and_json(
    flink: Flink, kafka: KafkaBroker, shared_registry: Registry, topic_prefix: str
) -> None:
    topic = write_topic(kafka.bootstrap_servers, shared_registry, f"{topic_prefix}.read", wide_messages(DEFAULT_FORMS))
    name_of = {of.name: name for name, of in NAMES.items()}
    columns = ", ".join(
        (
            f"CAST(CAST({name_of['decimal']} AS DECIMAL(12, 2)) + 1 AS STRING)",
            f"JSON_VALUE({name_of['address']}, '$.street')",
            f"JSON_QUERY({name_of['map<int, text>']}, '$')",
        )
    )
    assert flink.changes(topic, columns, where="id = 0") == [["+I", "30.97", "Elm 1", '{"1":"a"}']]
