"""Compares what the files ask for with what is there, and with what was made from them before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from schematizer.topic_files.planning import dangers
from schematizer.topic_files.planning.dangers import Danger
from schematizer.topic_files.planning.things import (
    NOTED,
    Content,
    Found,
    Kept,
    Kind,
    Thing,
    Value,
    Wanted,
    subject_of_thing,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from schematizer.topic_files.planning.wanted import Wishes

_OF_FILES_ALONE = {Kind.PRODUCER: frozenset({"seconds"}), Kind.CONSUMER: frozenset({"seconds"})}
"""Properties that clients also set themselves: a difference between file and server is none of hands."""


_LEFT_TO_OTHERS = {Kind.SOURCE: frozenset({"doc"})}
"""Properties that stay as they are if the files do not have them."""
PENDING = "pending"
"""A word in what is kept about a thing: it was about to be made."""


class Action(StrEnum):
    """The kind of a step."""

    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    # It is as the files say: only the note of what was made from them is missing or old.
    NOTE = "note"
    # It is gone, or belongs to another environment: only the note is removed.
    FORGET = "forget"
    # It concerns a topic of the files, and no file asks for it. It stays.
    FOREIGN = "foreign"


class Property(NamedTuple):
    """A property that changes."""

    # Its name.
    name: str
    # Its value now.
    before: Value
    # Its value to be.
    after: Value
    # The value that was applied, if someone changed it since; otherwise the value now.
    applied: Value

    @property
    def is_drift(self) -> bool:
        """Whether it was changed by hand."""
        return self.applied != self.before


@dataclass(frozen=True)
class Step:
    """A thing, and the work on it."""

    # The thing.
    thing: Thing
    # What is to be done.
    action: Action
    # What changes.
    properties: list[Property] = field(default_factory=list)
    # Why it is refused, unless flags allow it.
    dangers: list[Danger] = field(default_factory=list)
    # What the files ask for; None if they do not.
    wanted: Wanted | None = None
    # What people want to know of it.
    about: Mapping[str, str] = field(default_factory=dict)
    # Whether someone made, changed or removed it by hand.
    is_drift: bool = False
    # Its properties as they are, of a thing that is to be deleted.
    content: Content = field(default_factory=dict)

    @property
    def is_change(self) -> bool:
        """Whether a server is changed."""
        return self.action in (Action.CREATE, Action.CHANGE, Action.DELETE)


@dataclass(frozen=True)
class Plan:
    """The steps of an environment, by kind and name."""

    # The environment.
    environment: str
    # The steps.
    steps: list[Step]

    def changes(self) -> list[Step]:
        """Return the steps that change a server."""
        return [step for step in self.steps if step.is_change]

    def drift(self) -> list[Step]:
        """Return the steps about what someone changed by hand."""
        return [step for step in self.steps if step.is_drift]

    def refused(self, allowed: Collection[str]) -> list[Danger]:
        """Return the dangers that no flag allows. `allowed`: `NAME=TOPIC`."""
        every = [danger for step in self.steps for danger in step.dangers]
        return [danger for danger in every if not danger.is_allowable or danger.flag not in allowed]


@dataclass(frozen=True)
class Earlier:
    """The environment that comes before."""

    # Its name.
    environment: str
    # Things of this environment that it does not have yet, by their topic.
    missing: Mapping[Thing, str]


def make_plan(
    environment: str,
    wishes: Wishes,
    found: Mapping[Thing, Found],
    kept: Mapping[Thing, Kept],
    earlier: Earlier | None = None,
) -> Plan:
    """Compare. `found` has all things that are wanted or kept, if they are there, and those that concern the topics of
    the files.
    """
    steps: list[Step] = []
    for thing, wanted in wishes.own.items():
        step = _wanted(thing, wanted, found.get(thing), kept.get(thing))
        if step is not None:
            steps.append(step)
    topics = {thing.name for thing in wishes.own if thing.kind is Kind.TOPIC}
    for thing, note in kept.items():
        if thing not in wishes.own:
            steps.append(_unwanted(thing, note, found.get(thing), thing in wishes.elsewhere, topics))
    for thing, one in found.items():
        if thing not in wishes.own and thing not in kept and thing not in wishes.elsewhere and one.topic in topics:
            owner = wishes.own[Thing(Kind.TOPIC, one.topic)].about
            steps.append(Step(thing, Action.FOREIGN, about=owner, is_drift=True))
    if earlier is not None:
        steps = [_checked_order(step, earlier) for step in steps]
    order = list(Kind)
    return Plan(environment, sorted(steps, key=lambda step: order.index(step.thing.kind)))


def _wanted(thing: Thing, wanted: Wanted, found: Found | None, kept: Kept | None) -> Step | None:
    if kept is not None and PENDING in kept.about:  # an apply that ended early was about to make it
        kept = None
    if found is None:
        properties = [Property(name, None, value, None) for name, value in wanted.content.items() if value is not None]
        return Step(thing, Action.CREATE, properties, [], wanted, wanted.about, is_drift=kept is not None)
    properties = list(_properties(thing, wanted, found, kept))
    if not properties:
        is_noted = kept == Kept(dict(wanted.content), dict(wanted.about))
        return None if is_noted else Step(thing, Action.NOTE, wanted=wanted, about=wanted.about)
    found_dangers = list(dangers.of_topic(thing.name, wanted, found)) if thing.kind is Kind.TOPIC else []
    if thing.kind in (Kind.ENTRY, Kind.SOURCE):
        found_dangers = list(dangers.of_marks(thing.name, wanted, found))
    is_drift = any(one.is_drift for one in properties)
    return Step(thing, Action.CHANGE, properties, found_dangers, wanted, wanted.about, is_drift=is_drift)


def _properties(thing: Thing, wanted: Wanted, found: Found, kept: Kept | None) -> Iterator[Property]:
    of_files = _OF_FILES_ALONE.get(thing.kind, frozenset())
    for name in sorted({*wanted.content, *found.content}):
        before, after = found.content.get(name), wanted.content.get(name)
        applied = before if kept is None else kept.content.get(name)
        if name in _LEFT_TO_OTHERS.get(thing.kind, ()) and name not in wanted.content:
            continue
        if name in of_files:
            before = applied
        if before != after:
            yield Property(name, before, after, applied)


def _unwanted(thing: Thing, kept: Kept, found: Found | None, is_elsewhere: bool, topics: Collection[str]) -> Step:  # noqa: FBT001
    """A thing that was made from files that no longer ask for it."""
    topic = found.topic if found is not None else ""
    if found is None or is_elsewhere or thing.kind is Kind.SOURCE:  # what is documented stays so
        return Step(thing, Action.FORGET, about=kept.about)
    if thing.kind is Kind.TOPIC:
        return Step(thing, Action.DELETE, dangers=[dangers.deleted_topic(thing.name)], about=kept.about)
    if thing.kind is Kind.SCHEMA:
        if topic not in topics:  # a topic that is gone keeps its schemas: files and archives have messages with them
            return Step(thing, Action.FORGET, about=kept.about)
        return Step(thing, Action.DELETE, dangers=[dangers.deleted_schema(topic)], about=kept.about)
    is_off = thing.kind is Kind.ARCHIVE and topic in topics  # otherwise the topic is gone too, which is worse
    lost = [dangers.archive_off(topic)] if is_off else []
    return Step(thing, Action.DELETE, dangers=lost, about=kept.about, content=found.content)


def noted(kept: Mapping[Thing, Kept]) -> dict[Thing, Found]:
    """Return the things that are nowhere but in the notes. One that was only about to be made is not there."""
    return {
        thing: Found(note.content, topic=thing.name.partition(" ")[0])
        for thing, note in kept.items()
        if thing.kind in NOTED and PENDING not in note.about
    }


def _checked_order(step: Step, earlier: Earlier) -> Step:
    topic = earlier.missing.get(step.thing)
    if step.action is not Action.CREATE or topic is None:
        return step
    danger = dangers.before_staging(topic, earlier.environment)
    return Step(step.thing, step.action, step.properties, [danger], step.wanted, step.about, is_drift=step.is_drift)


def subjects_of(things: Collection[Thing]) -> set[str]:
    """Return the subjects of the schemas among these things."""
    return {subject_of_thing(thing) for thing in things if thing.kind is Kind.SCHEMA}
