"""The commands on dead letters: list them, send them again, discard one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cdc_messages.raw import RAW_SCHEMA, RawMessage, encode
from cdc_messages.tables import from_json
from cdc_messages.topics import partition_for, table_of, tables_topic
from cdc_program.errors import CdcError, Code
from cdc_program.registry import RegistryClient
from materializer.commands.state_list import positions_of
from materializer.fold.row_updates import decode_record, read_update
from materializer.job.planner import Tables, raw_topic_pattern
from materializer.kafka import TopicReader, Topics, send_all
from materializer.output.dead_letters import unresolved_dead_letters
from materializer.records import Message, RawRecord, UnreadableError
from materializer.rows.catalog import TableCatalog

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cdc_program.settings import KafkaSettings, Settings
    from materializer.job.plan import TableSchema
    from materializer.output.dead_letters import UnresolvedDeadLetter


def raw_topics(settings: KafkaSettings, table: str | None) -> list[str]:
    """The raw topics of the prefix, or that of `keyspace.table`; CdcError where there is none."""
    pattern = raw_topic_pattern(settings.topic_prefix)
    found = sorted(Topics(settings).matching(pattern))
    if table is None:
        return found
    wanted = f"{settings.topic_prefix}.raw.{table}"
    if wanted not in found:
        raise CdcError(Code.CONFIG_INVALID, f"There is no raw topic {wanted}.", "Name a table as keyspace.table.")
    return [wanted]


def show(settings: Settings, table: str | None) -> None:
    """Print the standing dead letters."""
    for topic in raw_topics(settings.kafka, table):
        for letter in unresolved_dead_letters(settings.kafka, topic):
            click.echo(_line(letter))


def replay(settings: Settings, table: str | None) -> None:
    """Send what can be read by now to its raw topic again."""
    tables = Tables(settings.kafka.topic_prefix)
    tables.add(TopicReader(settings.kafka, tables_topic(settings.kafka.topic_prefix)).read_to_end())
    counts = Topics(settings.kafka).partition_counts()
    for topic in raw_topics(settings.kafka, table):
        catalog = _catalog(tables.schemas(table_of(topic)))
        messages = []
        for letter in unresolved_dead_letters(settings.kafka, topic):
            problem = _problem(letter, catalog)
            click.echo(f"{_line(letter)}: {problem or 'sent again'}")
            if problem is None:
                messages.append(Message(topic, partition_for(letter.key, counts[topic]), letter.key, letter.value))
        send_all(settings.kafka, messages)


def discard(settings: Settings, letter_id: str) -> None:
    """Say that a message was never one of a publisher: nothing is missing where it was."""
    for topic in raw_topics(settings.kafka, None):
        for letter in unresolved_dead_letters(settings.kafka, topic):
            if letter.id == letter_id:
                send_all(settings.kafka, _voids(settings, letter))
                click.echo(f"{_line(letter)}: discarded")
                return
    raise CdcError(
        Code.CONFIG_INVALID,
        f"No dead letter with the id {letter_id} stands.",
        "`cassandra-materializer dead-letters ls` lists them; one that was sent again is settled once it is folded.",
    )


def _line(letter: UnresolvedDeadLetter) -> str:
    """Without the key, which is data."""
    time = datetime.fromtimestamp(letter.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return f"{letter.id} {letter.where} offset {letter.offset} at {time}: {letter.reason}"


def _problem(letter: UnresolvedDeadLetter, catalog: TableCatalog) -> str | None:
    """Why it still cannot be read."""
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


def _catalog(schemas: Iterable[TableSchema]) -> TableCatalog:
    newest = {each.table_id: each.digest for each in schemas}
    return TableCatalog({(each.table_id, each.digest): from_json(each.json) for each in schemas}, newest)


def _voids(settings: Settings, letter: UnresolvedDeadLetter) -> list[Message]:
    """Gap messages without a file, under the letter's own key, to where the mark is: where the letter was or, once the
    state was dealt out anew, where its key belongs; without a key, everywhere.
    """
    topic = letter.where.topic
    with RegistryClient(settings.registry) as registry:
        schema_id = registry.register(f"{topic}-value", RAW_SCHEMA)
    void = RawMessage("gap", bytes.fromhex(letter.id), 0, bytes(16), bytes(16), 0, bytes(16), 0, "", 0, 0)
    position = positions_of(settings, [letter.where])[letter.where]
    marked = [letter.where.partition]
    if position is not None and position.reshards:
        marked = [partition_for(letter.key, position.partitions)] if letter.key else list(range(position.partitions))
    return [Message(topic, number, letter.key, encode(void, schema_id)) for number in marked]
