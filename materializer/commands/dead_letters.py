"""`cassandra-materializer dead-letters`: lists dead-lettered messages, sends them again, or discards one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.raw import RAW_SCHEMA, RawMessage, encode
from cdc_common.messages.topics import partition_for, table_of
from materializer.commands.stored_partitions import read_positions
from materializer.errors import no_raw_topic
from materializer.fold.row_updates import decode_record, read_update
from materializer.job.planner import raw_topic_pattern
from materializer.output.dead_letters import unresolved_dead_letters
from materializer.planning.table_schemas import read_table_schemas
from materializer.processing.processor import table_catalog
from materializer.records import RawRecord, UnreadableError
from stream_runtime.kafka import Topics, send_all
from stream_runtime.records import Message

if TYPE_CHECKING:
    from cdc_common.settings import KafkaSettings
    from materializer.output.dead_letters import UnresolvedDeadLetter
    from materializer.rows.catalog import TableCatalog
    from materializer.settings import Settings


def list_dead_letters(settings: Settings, table: str | None) -> None:
    """Print the dead-lettered messages of a table, or of all tables."""
    letters = [
        letter
        for topic in find_raw_topics(settings.kafka, table)
        for letter in unresolved_dead_letters(settings.kafka, topic)
    ]
    for letter in letters:
        click.echo(_describe(letter))
    click.echo(f"{len(letters)} messages dead-lettered", err=True)


def replay_dead_letters(settings: Settings, table: str | None) -> None:
    """Send every message that can be read now to its raw topic again."""
    table_schemas = read_table_schemas(settings.kafka)
    counts = Topics(settings.kafka).partition_counts()
    found = sent = 0
    for topic in find_raw_topics(settings.kafka, table):
        catalog = table_catalog(table_schemas.for_table(table_of(topic)))
        messages = []
        for letter in unresolved_dead_letters(settings.kafka, topic):
            problem = _find_problem(letter, catalog)
            found, sent = found + 1, sent + (problem is None)
            click.echo(f"{_describe(letter)}: {'sent again' if problem is None else f'not sent: {problem}'}")
            if problem is None:
                numbers = [partition_for(letter.key, counts[topic])] if letter.key else _gap_places(settings, letter)
                messages += [Message(topic, number, letter.key, letter.value) for number in numbers]
        send_all(settings.kafka, messages)
    click.echo(f"{sent} of {found} messages sent", err=True)


def discard_dead_letter(settings: Settings, letter_id: str) -> None:
    """Declare that a message, with all its copies, never came from a publisher, so that nothing is missing without
    it.
    """
    topics = find_raw_topics(settings.kafka, None)
    unresolved = (letter for topic in topics for letter in unresolved_dead_letters(settings.kafka, topic))
    letters = [letter for letter in unresolved if letter.id == letter_id]
    if not letters:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"No dead-lettered message has the id {letter_id}.",
            "List the ids with `cassandra-materializer dead-letters ls`. A replayed message leaves the list once it is "
            "folded.",
        )
    for letter in letters:
        send_all(settings.kafka, _make_discards(settings, letter))
        click.echo(f"{_describe(letter)}: discarded")


def find_raw_topics(settings: KafkaSettings, table: str | None) -> list[str]:
    """The raw topics of the prefix, or the one of `keyspace.table`. CdcError if that does not exist."""
    pattern = raw_topic_pattern(settings.topic_prefix)
    found = sorted(Topics(settings).matching(pattern))
    if table is None:
        return found
    wanted = f"{settings.topic_prefix}.raw.{table}"
    if wanted not in found:
        raise no_raw_topic(wanted, found)
    return [wanted]


def _describe(letter: UnresolvedDeadLetter) -> str:
    """Return one line for a dead letter: its id, place, time and reason. It omits the key, which is data."""
    time = datetime.fromtimestamp(letter.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f"{letter.id} {letter.where} offset {letter.offset} at {time}: {letter.reason}"


def _find_problem(letter: UnresolvedDeadLetter, catalog: TableCatalog) -> str | None:
    """Why the message still cannot be read; None if it can be."""
    record = RawRecord(letter.key, letter.value, letter.offset, letter.timestamp_ms)
    try:
        message = decode_record(record)
        if message.update:
            read_update(message, record, catalog)
    except UnreadableError as error:
        return error.reason
    except CdcError as error:
        return error.problem
    return None


def _make_discards(settings: Settings, letter: UnresolvedDeadLetter) -> list[Message]:
    """Gap messages without a file name, under the message's own key. They clear the gap that the message has left."""
    topic = letter.where.topic
    with RegistryClient(settings.registry) as registry:
        schema_id = registry.register(f"{topic}-value", RAW_SCHEMA)
    gap = RawMessage("gap", bytes.fromhex(letter.id), 0, bytes(16), bytes(16), 0, bytes(16), 0, "", 0, 0)
    return [Message(topic, number, letter.key, encode(gap, schema_id)) for number in _gap_places(settings, letter)]


def _gap_places(settings: Settings, letter: UnresolvedDeadLetter) -> list[int]:
    """The gap is in the raw partition that had the message. After a reshard it is in the raw partition that the key now
    belongs to, or in all of them if the message has no key.
    """
    position = read_positions(settings, [letter.where])[letter.where]
    if position is None or not position.reshards:
        return [letter.where.partition]
    return [partition_for(letter.key, position.partitions)] if letter.key else list(range(position.partitions))
