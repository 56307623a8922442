"""Carries out a plan in batches, and notes in the registry what was made.

What is to be created is noted before, so that an apply that is killed leaves nothing that it does not know. A change is
noted after it was made, so that the next plan sees it as unfinished and not as made by hand.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from cdc_common.clients.kafka_admin import in_requests
from cdc_common.clients.registry.errors import RegistryRequestError
from cdc_common.clients.registry.views import Managed
from schematizer.topic_files.applying import kafka_changes
from schematizer.topic_files.applying.lease import leased
from schematizer.topic_files.planning.differences import PENDING, Action
from schematizer.topic_files.planning.rights import right_of
from schematizer.topic_files.planning.things import NOTED, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from schematizer.topic_files.applying.environment import Environment
    from schematizer.topic_files.applying.lease import HeldLease
    from schematizer.topic_files.planning.differences import Plan, Step
    from schematizer.topic_files.planning.things import Content, Value, Wanted

_AT_ONCE = 100
_IN_KAFKA = frozenset({Kind.TOPIC, Kind.QUOTA, Kind.RIGHT})


class Applier:
    """Carries out plans of one environment."""

    def __init__(self, environment: Environment, lease: HeldLease, report: Callable[[Step], None]) -> None:
        """`report` gets each step once it is done."""
        self._environment = environment
        self._admin = environment.admin
        self._lease = lease
        self._report = report

    def apply(self, plan: Plan) -> None:
        """Carry out all steps of a plan that has nothing refused. CdcError: what was done until then is noted, and the
        next apply continues.
        """
        for steps in _ordered(plan):
            for batch in in_requests(steps, _AT_ONCE):
                self._lease.keep()
                self._carry_out(batch)

    def _carry_out(self, batch: Sequence[Step]) -> None:
        """Steps of one kind and action."""
        action = batch[0].action
        if action is Action.CREATE:
            self._note(batch, is_pending=True)
        if action in (Action.CREATE, Action.CHANGE):
            self._make(batch)
        elif action is Action.DELETE:
            self._delete(batch)
        if action in (Action.DELETE, Action.FORGET):
            self._forget(batch)
        else:
            self._note(batch)
        for step in batch:
            self._report(step)

    def _make(self, batch: Sequence[Step]) -> None:
        kind = batch[0].thing.kind
        if kind in NOTED:
            return
        if kind not in _IN_KAFKA:
            for step in batch:
                self._lease.keep()
                self._environment.registry.create(step)
        elif kind is Kind.TOPIC:
            if batch[0].action is Action.CREATE:
                kafka_changes.create_topics(self._admin, {step.thing.name: _wanted(step).content for step in batch})
            else:
                self._change_topics(batch)
        elif kind is Kind.QUOTA:
            self._environment.quotas.set({step.thing.name: _changed(step) for step in batch})
        else:
            kafka_changes.create_rights(self._admin, [right_of(_wanted(step).content) for step in batch])

    def _change_topics(self, batch: Sequence[Step]) -> None:
        counts: dict[str, int] = {}
        settings: dict[str, dict[str, Value]] = {}
        for step in batch:
            name, content, changed = step.thing.name, _wanted(step).content, _changed(step)
            if any(danger.name == "fewer-partitions" for danger in step.dangers):
                kafka_changes.recreate_topic(self._admin, name, content)
                continue
            if "partitions" in changed:
                counts[name] = int(str(changed["partitions"]))
            own = {key: value for key, value in changed.items() if key not in kafka_changes.SHAPE}
            if own:
                settings[name] = own
        if settings:
            kafka_changes.alter_settings(self._admin, settings)
        if counts:
            kafka_changes.add_partitions(self._admin, counts)

    def _delete(self, batch: Sequence[Step]) -> None:
        kind = batch[0].thing.kind
        if kind is Kind.TOPIC:
            kafka_changes.delete_topics(self._admin, [step.thing.name for step in batch])
        elif kind is Kind.QUOTA:
            rates = self._environment.quotas.read()
            self._environment.quotas.set(
                {step.thing.name: dict.fromkeys(rates[step.thing].content) for step in batch if step.thing in rates}
            )
        elif kind in NOTED:
            return
        elif kind is Kind.RIGHT:
            kafka_changes.delete_rights(self._admin, [right_of(step.content) for step in batch])
        else:
            for step in batch:
                self._lease.keep()
                self._environment.registry.delete(step.thing)

    def _note(self, batch: Iterable[Step], *, is_pending: bool = False) -> None:
        more = {PENDING: "true"} if is_pending else {}
        put = [
            Managed(
                kind=step.thing.kind.value,
                name=step.thing.name,
                content=dict(_wanted(step).content),
                about={**_wanted(step).about, **more},
            )
            for step in batch
        ]
        self._write(put, [])

    def _forget(self, batch: Iterable[Step]) -> None:
        self._write([], [(step.thing.kind.value, step.thing.name) for step in batch])

    def _write(self, put: Sequence[Managed], remove: Sequence[tuple[str, str]]) -> None:
        client = self._environment.registry.client
        try:
            client.change_managed(self._environment.name, self._lease.token, put, remove)
        except RegistryRequestError as error:
            raise leased(error) from error


def _ordered(plan: Plan) -> Iterator[list[Step]]:
    """Yield the steps of each kind and action. Rights go first; then all is made, in the order of kinds; what is
    deleted comes last, topics at the end.
    """
    groups: dict[tuple[Kind, Action], list[Step]] = defaultdict(list)
    for step in plan.steps:
        if step.action is not Action.FOREIGN:
            groups[step.thing.kind, step.action].append(step)
    order = [(Kind.RIGHT, Action.DELETE)]
    order += [(kind, action) for kind in Kind for action in (Action.CREATE, Action.CHANGE, Action.NOTE, Action.FORGET)]
    order += [(kind, Action.DELETE) for kind in reversed(Kind) if kind is not Kind.RIGHT]
    return (groups[place] for place in order if groups[place])


def _wanted(step: Step) -> Wanted:
    assert step.wanted is not None
    return step.wanted


def _changed(step: Step) -> Content:
    return {one.name: one.after for one in step.properties}
