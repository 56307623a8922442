"""The native core's join of random messages, compared with the Python code's, message by message."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.errors.codes import CdcError
from dev.verify.fuzz.mutate import mutated
from joinery.internal.codec import CodecError, decode, encode
from joinery.job.native_join import NativeJoin
from joinery.joining.errors import JoinError
from joinery.joining.join import join_chunk
from joinery.joining.layout import LOADING, PHASE
from joinery.joining.records import Rule, Sizes
from joinery.output.messages import JoinedWriter
from stream_runtime.records import Message, Record
from tests.support.joinery.changelogs import TARGET_PARTITIONS, Change, Changelogs, Input, rule_of
from tests.support.materializer.memory_state import MemoryState

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


PARTITION = 3
TS_MS = 6_000
BUDGETS = (1, 40, 200, 1 << 30)
COUNTS = b"n"
STATE_ERRORS = (ArithmeticError, AssertionError, LookupError, ValueError)
"""How the Python code refuses values that no state has."""


class Case(NamedTuple):
    """Messages of a partition of an internal topic."""

    # The join's rule.
    rule: Rule
    # The messages, with gaps between their offsets.
    records: list[Record]
    # Whether rows are loaded before joined rows are sent.
    is_new: bool = False


class Outcome(NamedTuple):
    """The result of joining messages, up to the first one that cannot be joined."""

    # The messages of the target.
    messages: list[Message]
    # The state afterwards.
    state: dict[bytes, bytes]
    # How many messages were joined.
    done: int
    # How many of them the native core has joined.
    native: int = 0
    # The sizes of the groups that the messages have met.
    sizes: Sizes | None = None


def random_case(rng: random.Random, most_changes: int = 40) -> Case:
    """Changes of two or three inputs: key moves, null keys, deletions, and messages that come twice."""
    inputs = [Input(rng.random() < 0.5, rng.random() < 0.4) for _ in range(rng.choice((2, 2, 3)))]
    logs = Changelogs(inputs)
    for _ in range(rng.randrange(most_changes)):
        of, row_id = rng.randrange(len(inputs)), rng.randrange(4)
        logs.add(Change(of, row_id, rng.choice((None, 0, 1)), rng.choice((None, 0, 1, 2))))
    is_new = rng.random() < 0.4
    if is_new:
        logs.mark(rng)
    waiting = list(logs.sent)
    while waiting:
        place = rng.choice(waiting)
        if not logs.deliver(*place):
            waiting.remove(place)
    sent = logs.topic[rng.randrange(TARGET_PARTITIONS)]
    definition = rng.choice((0, 5))
    numbers = (0, 5, 5, 5, 5) if rng.random() < 0.9 else (0, 5, 5, 5, 6)
    routed = [
        message._replace(may_miss=is_new or rng.random() < 0.5, definition=rng.choice(numbers)) for message in sent
    ]
    if routed and rng.random() < 0.3:
        routed.insert(rng.randrange(len(routed)), rng.choice(routed))
    records = [Record(*encode(message), 2 * number, 0) for number, message in enumerate(routed)]
    rule = rule_of(inputs, most_rows=rng.choice((2, 10**9)))._replace(definition=definition)
    return Case(rule, records, is_new)


def by_python(case: Case, state: MemoryState, most_bytes: int) -> Outcome:
    """Join one message after the other, in parts."""
    made: list[Message] = []
    sizes = _no_sizes(case)
    for done, record in enumerate(case.records):
        try:
            sizes = sizes.and_then(_join_python(case, state, record, most_bytes, made))
        except (CodecError, CdcError, JoinError, *STATE_ERRORS):
            return Outcome(made, state.data, done, sizes=sizes)
    return Outcome(made, state.data, len(case.records), sizes=sizes)


def by_core(case: Case, state: MemoryState, most_bytes: int, rng: random.Random) -> Outcome:
    """Join chunks of any sizes. What the core does not take is the Python code's."""
    join = NativeJoin(case.rule, writer(case), PARTITION)
    made: list[Message] = []
    done = native = 0
    sizes = _no_sizes(case)
    while done < len(case.records):
        records = case.records[done : done + rng.choice((1, 3, 100))]
        found = join.join(state, records, most_bytes, TS_MS)
        if found is not None:
            state.apply(found.writes)
            made += found.messages
            sizes = sizes.and_then(found.sizes)
            native += len(records) - found.left
            done += len(records) - found.left
            continue
        try:
            sizes = sizes.and_then(_join_python(case, state, records[0], most_bytes, made))
        except (CodecError, CdcError, JoinError, *STATE_ERRORS):
            break
        done += 1
    return Outcome(made, state.data, done, native, sizes)


def check_join(rng: random.Random, case: Case, data: dict[bytes, bytes] | None = None) -> int:
    """Both make the same, from a state that has these pairs. How many messages the core has joined."""
    states = MemoryState(), MemoryState()
    for state in states:
        state.data = dict({PHASE: LOADING} if case.is_new and data is None else data or {})
    most_bytes = rng.choice(BUDGETS)
    python = by_python(case, states[0], most_bytes)
    core = by_core(case, states[1], most_bytes, rng)
    assert core.messages == python.messages
    assert core.done == python.done
    assert core.sizes == python.sizes
    if core.done == len(case.records):
        assert core.state == python.state
    return core.native


def writer(case: Case) -> JoinedWriter:
    inputs = [SimpleNamespace(name=f"input{number}") for number in range(len(case.rule.optional))]
    plan: Any = SimpleNamespace(inputs=inputs, join=SimpleNamespace(name="a join"))
    return JoinedWriter(plan, "target", 7, 8)


def _no_sizes(case: Case) -> Sizes:
    inputs = len(case.rule.optional)
    return Sizes((0,) * inputs, (0,) * inputs, 0)


def _join_python(case: Case, state: MemoryState, record: Record, most_bytes: int, made: list[Message]) -> Sizes:
    """Join one message. Its messages are added part by part."""
    messages = [(record.offset, decode(record.key, record.value))]
    sizes = _no_sizes(case)
    while messages:
        chunk = join_chunk(case.rule, state, messages, most_bytes)
        made += writer(case).messages(chunk.changes, PARTITION, TS_MS)
        state.apply(chunk.writes)
        messages = messages[len(messages) - chunk.left :]
        sizes = sizes.and_then(chunk.sizes)
    return sizes


def damaged(rng: random.Random, records: Sequence[Record]) -> list[Record]:
    """The records with the key or the value of some of them damaged."""
    made = list(records)
    for at in rng.sample(range(len(made)), min(len(made), rng.choice((1, 1, 3)))):
        record = made[at]
        if rng.random() < 0.3:
            made[at] = record._replace(key=mutated(rng, record.key, [record.key]))
        else:
            made[at] = record._replace(value=mutated(rng, record.value, [record.value]))
    return made


def check_damaged_join(rng: random.Random) -> tuple[int, int]:
    """How many messages there were, and how many the core has joined."""
    case = random_case(rng)
    return len(case.records), check_join(rng, case._replace(records=damaged(rng, case.records)))


def check_join_of_damaged_state(rng: random.Random) -> tuple[int, int]:
    """How many messages there were, and how many the core has joined."""
    case, state = random_case(rng), MemoryState()
    if case.is_new:
        state.data = {PHASE: LOADING}
    middle = len(case.records) // 2
    by_python(case._replace(records=case.records[:middle]), state, 1 << 30)
    data = {key: mutated(rng, value, [value]) if rng.random() < 0.2 else value for key, value in state.data.items()}
    rest = case._replace(records=case.records[middle:])
    if any(data[key] != value for key, value in state.data.items() if key.startswith(COUNTS)):
        state.data = data  # the core trusts counters: if they are 0, it reads no rows
        return len(rest.records), by_core(rest, state, rng.choice(BUDGETS), rng).native
    return len(rest.records), check_join(rng, rest, data)
