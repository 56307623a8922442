"""Names what a change would lose. A dangerous change is refused unless a flag names it and its topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schematizer.topic_files.planning.things import Found, Value, Wanted

_HOUR_MS = 3_600_000
_FIELDS, _MARK = "fields.", ".pii"
"""The beginning of the properties of fields, and the end of the mark of personal data."""


class Danger(NamedTuple):
    """A reason to refuse a change."""

    # Its name in the flag `--allow NAME=TOPIC`.
    name: str
    # The topic, or the source.
    topic: str
    # What would be lost, as a sentence.
    loss: str
    # Whether a flag can allow it.
    is_allowable: bool = True

    @property
    def flag(self) -> str:
        """The value of the flag that allows it."""
        return f"{self.name}={self.topic}"


NAMES = {
    "delete-topic": "a topic is deleted, with all its messages",
    "fewer-partitions": "a topic is deleted and created again, as Kafka cannot remove partitions",
    "more-partitions": "partitions are added to a topic in which the order of one key's messages counts",
    "compaction-off": "old messages are deleted by their age, even the newest of a key",
    "compaction-on": "older messages of a key are removed, and messages without a key are refused",
    "shorter-retention": "messages are deleted earlier",
    "fewer-in-sync": "acknowledged messages can be lost with fewer brokers",
    "delete-schema": "a schema that was applied is deleted from its subject",
    "not-personal": "a field is no longer marked as personal data",
    "archive-off": "a topic is no longer archived",
    "before-staging": "a topic or schema comes to an environment before the one that it must be in first",
}
"""The dangers that a flag can allow."""


def deleted_topic(topic: str) -> Danger:
    return Danger("delete-topic", topic, "All messages of the topic are lost.")


def deleted_schema(topic: str) -> Danger:
    loss = "Producers can no longer register it, and consumers with it may not read newer messages."
    return Danger("delete-schema", topic, loss)


def archive_off(topic: str) -> Danger:
    return Danger("archive-off", topic, "Its messages are no longer archived: those that Kafka deletes are lost.")


def before_staging(topic: str, earlier: str) -> Danger:
    return Danger("before-staging", topic, f"It was not tried in {earlier}: it is not applied there.")


def of_topic(topic: str, wanted: Wanted, found: Found) -> Iterator[Danger]:
    """Yield what a change of a topic would lose."""
    yield from _partitions(topic, wanted, found)
    yield from _cleanup(topic, wanted, found)
    yield from _retention(topic, wanted, found)
    in_sync = _number(found.effective.get("min.insync.replicas")), _number(wanted.content.get("min.insync.replicas"))
    if "min.insync.replicas" in found.content and in_sync[0] is not None and (in_sync[1] or 1) < in_sync[0]:
        loss = f"A message is acknowledged once {in_sync[1] or 1} brokers have it, and is lost with them."
        yield Danger("fewer-in-sync", topic, loss)


def of_marks(name: str, wanted: Wanted, found: Found) -> Iterator[Danger]:
    """Yield the fields whose marks as personal data a change removes."""
    gone = [field for field, value in found.content.items() if _is_mark(field, value) and not wanted.content.get(field)]
    if gone:
        fields = ", ".join(sorted(field.removeprefix(_FIELDS).removesuffix(_MARK) for field in gone))
        yield Danger("not-personal", name, f"Warehouses and readers without the right may get {fields}.")


def _is_mark(name: str, value: Value) -> bool:
    return name.startswith(_FIELDS) and name.endswith(_MARK) and bool(value)


def _partitions(topic: str, wanted: Wanted, found: Found) -> Iterator[Danger]:
    before, after = _number(found.content.get("partitions")) or 0, _number(wanted.content["partitions"]) or 0
    if after < before:
        yield Danger(
            "fewer-partitions", topic, "All its messages are lost: Kafka cannot remove partitions, so it is made again."
        )
    elif after > before and wanted.is_keyed:
        yield Danger(
            "more-partitions",
            topic,
            "Newer messages of a key come to another partition than older ones: their order is lost, and compaction "
            "keeps both.",
        )
    factor = found.content.get("replication_factor")
    if factor != wanted.content["replication_factor"]:
        yield Danger(
            "replication-factor",
            topic,
            f"Kafka changes the number of copies only by moving partitions: use kafka-reassign-partitions.sh, or write "
            f"replication_factor = {factor} into the file.",
            is_allowable=False,
        )


def _cleanup(topic: str, wanted: Wanted, found: Found) -> Iterator[Danger]:
    before, after = str(found.effective.get("cleanup.policy", "delete")), str(wanted.content["cleanup.policy"])
    if "compact" in before and "delete" in after and "delete" not in before:
        yield Danger("compaction-off", topic, "Messages older than the retention are deleted, even a key's newest.")
    elif "compact" in before and "compact" not in after:
        yield Danger("compaction-off", topic, "The topic no longer keeps one message of each key.")
    if "compact" in after and "compact" not in before:
        yield Danger("compaction-on", topic, "Older messages of each key are removed; those without a key are refused.")


def _retention(topic: str, wanted: Wanted, found: Found) -> Iterator[Danger]:
    if "delete" not in str(wanted.content["cleanup.policy"]):
        return
    for name in ("retention.ms", "retention.bytes"):
        before, after = found.effective.get(name), wanted.content.get(name)
        if after is None and name not in found.content:
            continue  # the brokers' default stays
        if not _is_shorter(before, after):
            continue
        loss = "The brokers' default is to count: older messages may be deleted."
        if after is not None:
            limit = f"{(_number(after) or 0) / _HOUR_MS:g} h" if name == "retention.ms" else f"the newest {after} bytes"
            what = "Messages older than" if name == "retention.ms" else "Messages before"
            loss = f"{what} {limit} are deleted."
        yield Danger("shorter-retention", topic, loss)


def _is_shorter(before: Value, after: Value) -> bool:
    """Whether less is kept. -1 is without an end; no value is the brokers' default, which may be anything."""
    if after is None:
        return True
    old, new = _number(before), _number(after)
    if new is None or new < 0 or old is None:
        return False
    return old < 0 or new < old


def _number(value: Value) -> int | None:
    return None if value is None else int(value)
