"""Clients of Python, Java, Go and JavaScript, DuckDB and Spark read every type from a change topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, TypeForms
from tests.support.consumers.clients import CLIENTS, client_rows
from tests.support.consumers.typed_topic import expected_rows, write_topic
from tests.support.consumers.wide_table import wide_messages

if TYPE_CHECKING:
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker
    from tests.support.schematizer.registry_process import Registry

pytestmark = [pytest.mark.servers, pytest.mark.exhaustive]

FORMS: dict[str, TypeForms] = {"default": DEFAULT_FORMS, "exact": EXACT}


@pytest.mark.parametrize("language", CLIENTS)
def test_every_type_is_read(
    kafka: KafkaBroker, shared_registry: Registry, topic_prefix: str, tmp_path: Path, language: str
) -> None:
    command = CLIENTS[language](tmp_path)
    for name, forms in FORMS.items():
        messages = wide_messages(forms)
        topic = write_topic(kafka.bootstrap_servers, shared_registry, f"{topic_prefix}.{name}", messages)
        assert client_rows(command, topic) == expected_rows(messages)
