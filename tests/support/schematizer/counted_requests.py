"""Counts the requests of topic commands: to Kafka by the log of librdkafka, to the registry as HTTP has them."""

from __future__ import annotations

import logging
import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient

from cdc_common.clients.kafka import client_config
from cdc_common.clients.registry.transport import Transport
from cdc_common.settings.load import load_settings
from schematizer.commands import topic_plans
from schematizer.settings import Settings
from schematizer.topic_files.applying import environment
from schematizer.topic_files.applying.quotas import Quotas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest

    from cdc_common.settings import KafkaSettings
    from tests.support.schematizer.topic_commands import TopicCommands

_SENT = re.compile(r"Sent (\w+)Request \(v")
_CONNECTION = frozenset({"ApiVersion", "SaslHandshake", "SaslAuthenticate", "Metadata"})
"""Those of each connection; librdkafka also sends Metadata whenever it thinks that it should."""
_DEBUG = 7
_NAMED = frozenset({"subjects", "namespaces", "sources", "topics", "deployments"})
"""Words of paths that a name follows."""


class CountedRequests(logging.Handler):
    """The requests since it was made, by kind. librdkafka's logger gives it a line for each."""

    def __init__(self) -> None:
        super().__init__()
        self.kafka: Counter[str] = Counter()
        self.registry: Counter[str] = Counter()
        self.admins: list[AdminClient] = []

    def emit(self, record: logging.LogRecord) -> None:
        found = _SENT.search(record.getMessage())
        if found is not None and found[1] not in _CONNECTION:
            self.kafka[found[1]] += 1

    def total(self) -> tuple[int, int]:
        """The requests to Kafka and to the registry."""
        return self.kafka.total(), self.registry.total()


def run_plan(commands: TopicCommands, name: str) -> None:
    topic_plans.plan(_settings(commands), commands.root, name, (), "text")


def run_apply(commands: TopicCommands, name: str) -> None:
    topic_plans.apply(_settings(commands), commands.root, name, (), 60, dry_run=False)


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountedRequests]:
    """Count the requests of the commands that run within, in this process."""
    counts = CountedRequests()
    logger = logging.getLogger("librdkafka's requests")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(counts)

    def admin(settings: KafkaSettings, own: dict[str, object]) -> AdminClient:
        config = {**client_config(settings), **own, "debug": "protocol", "log_level": _DEBUG, "logger": logger}
        client = AdminClient(config)  # type: ignore[arg-type] # properties of several types
        counts.admins.append(client)
        return client

    with monkeypatch.context() as patched:
        patched.setattr(environment, "logged_admin", admin)
        patched.setattr(Transport, "_send", _counting(Transport._send, counts.registry, _http_name))
        patched.setattr(Quotas, "_ask", _counting(Quotas._ask, counts.kafka, _quota_name))
        yield counts
        for client in counts.admins:
            while client.poll(0.2):  # log lines come with it
                continue
            client.poll(0.2)
        logger.removeHandler(counts)


def _counting(method: Callable[..., Any], counts: Counter[str], name_of: Callable[..., str]) -> Callable[..., Any]:
    def counting(self: object, *arguments: Any) -> Any:  # noqa: ANN401 - of any method
        counts[name_of(*arguments)] += 1
        return method(self, *arguments)

    return counting


def _http_name(method: str, url: str, *_rest: object) -> str:
    """The method and the words of the path, without names."""
    words, parts = [], iter(url.removeprefix("/api/v1").split("/"))
    for word in parts:
        words.append(word)
        if word in _NAMED:
            next(parts, None)
    return f"{method} {'/'.join(words)}"


def _quota_name(_problem: str, request: object) -> str:
    return type(request).__name__.removesuffix("Request")


def _settings(commands: TopicCommands) -> Settings:
    return load_settings(commands.settings, {}, secrets_of=("kafka", "registry")).of(Settings)
