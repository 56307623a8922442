"""The rules of the assignment of topics."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from schematizer.avro_schemas.compatibility import Level, conflicts
from schematizer.avro_schemas.parsing import AvroSchema

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 3


class Rule(StrEnum):
    """The rule that decided."""

    FIRST_TOPIC = "first-topic"
    TOPIC_DISABLED = "topic-disabled"
    PRIMARY_KEY = "primary-key"
    PII_FLAG = "pii-flag"
    PII_NEEDS_ITS_TOPIC = "pii-needs-its-topic"
    INCOMPATIBLE = "incompatible"
    COMPATIBLE = "compatible"


@dataclass(frozen=True, slots=True)
class NewSchema:
    """A schema to be registered."""

    # The schema of values.
    schema: AvroSchema
    # The canonical key schema; None without one.
    key: str | None
    # The paths of the primary key's fields, in order.
    primary_key: tuple[str, ...]
    # The paths of all its fields.
    paths: frozenset[str]
    # The paths of its personal fields.
    pii: frozenset[str]


@dataclass(frozen=True, slots=True)
class NewestTopic:
    """The newest topic of the source."""

    # The topic's name.
    name: str
    # Whether it is disabled.
    is_disabled: bool
    # Whether its name begins with the prefix of personal data.
    is_private: bool
    # Whether anything says what its key is.
    is_key_known: bool
    # The canonical key schema; None without one.
    key: str | None
    # The paths of the primary key's fields, in order.
    primary_key: tuple[str, ...]
    # The paths of all fields of its schemas.
    paths: frozenset[str]
    # The personal fields that it was made for.
    pii: frozenset[str]
    # The ids and schemas that are not disabled, the oldest first.
    schemas: tuple[tuple[int, AvroSchema], ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a schema."""

    # Whether it needs a new topic.
    is_new_topic: bool
    # The rule that decided.
    rule: Rule
    # The reason, as a sentence.
    reason: str


def decide(new: NewSchema, newest: NewestTopic | None) -> Verdict:
    """The schema shares the newest topic if both can read each other, it has the same key, and the same fields are
    personal. A new field may be personal where the topic is one for personal data.
    """
    if newest is None:
        return Verdict(True, Rule.FIRST_TOPIC, "The source has no topic yet.")
    for rule, reason in _reasons(new, newest):
        return Verdict(True, rule, reason)
    count = len(newest.schemas)
    readable = f"It and the {count} enabled schemas" if count != 1 else "It and the one enabled schema"
    return Verdict(False, Rule.COMPATIBLE, f"{readable} of {newest.name} read each other.")


def _reasons(new: NewSchema, newest: NewestTopic) -> Iterable[tuple[Rule, str]]:
    """Yield the reasons against the newest topic, strongest first. The last one costs the most, so it is
    found lazily.
    """
    if newest.is_disabled:
        yield Rule.TOPIC_DISABLED, f"{newest.name} is disabled."
    if newest.is_key_known and (new.key, new.primary_key) != (newest.key, newest.primary_key):
        yield Rule.PRIMARY_KEY, _key_reason(new, newest)
    changed = sorted(path for path in new.paths & newest.paths if (path in new.pii) != (path in newest.pii))
    if changed:
        yield Rule.PII_FLAG, f"The flag for personal data changed for {_listed(changed)} since {newest.name}."
    if new.pii and not newest.is_private:
        yield (
            Rule.PII_NEEDS_ITS_TOPIC,
            f"{_listed(sorted(new.pii))} is personal, and {newest.name} is no topic for personal data.",
        )
    numbered = list(newest.schemas)
    found = conflicts(Level.FULL_TRANSITIVE, new.schema, numbered)
    if found:
        yield Rule.INCOMPATIBLE, f"With {newest.name} (versions are ids of schemas): {'; '.join(found[:_SHOWN])}."


def _key_reason(new: NewSchema, newest: NewestTopic) -> str:
    if new.primary_key != newest.primary_key:
        return (
            f"The primary key is ({', '.join(new.primary_key)}), in {newest.name} it is "
            f"({', '.join(newest.primary_key)})."
        )
    return f"The key's schema differs from the one of {newest.name}."


def _listed(paths: list[str]) -> str:
    return ", ".join(paths)
