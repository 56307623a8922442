"""Whether what came out of a case is what SELECT shows, and whether it is a history."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from dev.local_stack.clients.compare import compare
from dev.local_stack.clients.history import History, chain_problems, readable
from dev.verify.model.outcome import base_of, newest_topics

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from dev.local_stack.clients.change import Change
    from dev.local_stack.clients.cql import CqlClient

PURGED = ("gc_grace_seconds",)


def by_keyspace(changes: Iterable[Change]) -> dict[str, list[Change]]:
    """The changes of each keyspace."""
    found: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        found[change.keyspace].append(change)
    return found


def history_of(changes: Iterable[Change]) -> History:
    history = History()
    history.add(changes)
    return history


def differences(client: CqlClient, history: History, tables: Sequence[tuple[str, str]]) -> tuple[list[str], int]:
    """A line for each row that differs from SELECT, and how many rows were compared."""
    newest = newest_topics(history)
    current = History()
    for (topic, _), changes in history.changes.items():
        if topic == newest[base_of(topic)]:
            current.add(replace(change, table=base_of(change.table)) for change in changes)
    result = compare(client, current, tables)
    return [*result.differences, *_former_keys(history, set(newest.values()))], result.rows


def _former_keys(history: History, newest: Collection[str]) -> Iterator[str]:
    for topic in history.tables() - set(newest):
        for key, _ in history.latest(topic):
            yield f"{topic} {readable(key)}: not deleted in a former version of the topic"


def chains(history: History, text: str) -> Iterator[str]:
    """A line for each break of a chain; `text` are the statements of the case."""
    versions = {topic for topic in history.tables() if topic != base_of(topic)}
    may_be_purged = bool(versions) or any(word in text for word in PURGED)
    for (topic, _), changes in history.changes.items():
        for problem in chain_problems(changes, may_be_purged=may_be_purged):
            yield f"{topic} {readable(changes[0].key)}: {problem}"


def left_after_drop(history: History) -> list[str]:
    """A line for each key that has not ended although its table was dropped."""
    return [
        f"{topic} {readable(key)}: is still there after the DROP"
        for topic in history.tables()
        for key, _ in history.latest(topic)
    ]
