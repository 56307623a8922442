"""The repairs of Cassandra partitions that a raw partition has heard of (decision 0041).

While a repair is open, the images of its hosts and later writes are held (materializer.fold.held), and the rows change
as usual. Once all hosts have ended, the held messages replace the rows. If they do not end in time, nothing changes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeGuard
from uuid import UUID

from cdc_common.messages.raw import REPAIR_KINDS
from cdc_common.messages.repairs import is_repair_image
from materializer.records import Arrival
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import REPAIR, REPAIR_END, held_end, held_prefix, repair_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.messages.repairs import RepairStep
    from materializer.fold.arrivals import AnyArrival
    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader

RepairState: TypeAlias = Literal["open", "done", "failed"]

_UNENDED = ("expected", "running")


class Ended(NamedTuple):
    """The end of a host's part of a repair."""

    # The segment of RepairStep.flushed_to.
    segment: int
    # The position of RepairStep.flushed_to in its segment.
    position: int
    # RepairStep.replicas; 0 where an earlier version of the state has stored it.
    replicas: int = 0


# What is known of a host: nothing yet; it has begun; or it has ended.
HostPart: TypeAlias = Literal["expected", "running"] | Ended


class Repair(NamedTuple):
    """One repair of one Cassandra partition.

    A repair that is over is kept until its time is over: no copy of its messages can begin it again.
    """

    # The serialized partition key.
    partition_key: bytes
    # The repair's id.
    id: UUID
    # The end of its time, in ms of the raw partition's time.
    until_ms: int
    # The digest of the table's schema when it began.
    schema: bytes
    # Whether it is open, and how it has ended.
    state: RepairState
    # How far each host is, by its id.
    hosts: Mapping[bytes, HostPart]

    @property
    def has_ended(self) -> bool:
        return all(isinstance(part, Ended) for part in self.hosts.values())

    @property
    def has_all_replicas(self) -> bool:
        """Whether the hosts that have sent images are all that have the Cassandra partition. They are not if its tokens
        have moved since it began, perhaps to a node that is not asked.
        """
        replicas = [part.replicas for part in self.hosts.values() if isinstance(part, Ended) and part.replicas]
        return len(replicas) >= max(replicas, default=1)

    @property
    def key(self) -> bytes:
        return repair_key(REPAIR, self.partition_key, self.id.bytes)

    @property
    def flushed_to(self) -> dict[bytes, tuple[int, int]]:
        """RepairStep.flushed_to of each host."""
        return {host: part[:2] for host, part in self.hosts.items() if isinstance(part, Ended)}


class Repairs:
    """The repairs in one raw partition's state."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._known = {(repair.partition_key, repair.id): repair for repair in read_repairs(overlay)}

    def open_of(self, partition_key: bytes) -> list[Repair]:
        """The open repairs of a Cassandra partition."""
        if not self._known:
            return []
        return [
            repair
            for repair in self._known.values()
            if repair.partition_key == partition_key and repair.state == "open"
        ]

    @property
    def open_partitions(self) -> set[bytes]:
        """The keys of the Cassandra partitions with an open repair."""
        return {repair.partition_key for repair in self._known.values() if repair.state == "open"}

    def get(self, partition_key: bytes, repair: UUID) -> Repair | None:
        return self._known.get((partition_key, repair))

    def apply_step(  # noqa: PLR0913 - what is known of the step
        self,
        step: RepairStep,
        host: bytes,
        partition_key: bytes,
        arrival_ms: int,
        schema: bytes,
        *,
        is_heard: bool,
    ) -> Repair | None:
        """Take note of a host's reset or reset_end. The repair if all its hosts have ended now: then it counts as done.

        schema: the digest of the table's newest schema. is_heard: whether all that hosts send now is merged; if not,
        the repair fails.
        """
        repair = self.get(partition_key, step.repair)
        if repair is None:
            if step.state != "running" or arrival_ms > step.until_ms:
                return None
            repair = Repair(
                partition_key, step.repair, step.until_ms, schema, "open", dict.fromkeys(step.hosts, "expected")
            )
        if repair.state != "open":
            return None
        part: HostPart = "running" if step.state == "running" else Ended(*step.flushed_to, step.replicas)
        is_late = arrival_ms > repair.until_ms
        if step.state == "given_up" or is_late or schema != repair.schema or not is_heard:
            self.fail(repair)
        elif step.state == "running" or repair.hosts.get(host) == "running":  # an end without a begin says nothing
            return self._follow(repair._replace(hosts={**repair.hosts, host: part}))
        return None

    def _follow(self, repair: Repair) -> Repair | None:
        """The repair if it is done."""
        if repair.has_ended and not repair.has_all_replicas:
            self.fail(repair)
            return None
        self._put(repair._replace(state="done") if repair.has_ended else repair)
        return repair if repair.has_ended else None

    def note_snapshot(self, partition_key: bytes, host: bytes) -> None:
        """A host has sent a snapshot's image of a Cassandra partition. If it has begun an open repair of it before, the
        image may have what is in no log and not in the repair's images: the repair fails.
        """
        for repair in self.open_of(partition_key):
            if repair.hosts.get(host) != "expected":
                self.fail(repair)

    def fail(self, repair: Repair) -> None:
        """Mark the repair as failed. It changes no rows."""
        self._put(repair._replace(state="failed"))

    def fail_all(self) -> None:
        """The rows of the whole table end."""
        for repair in list(self._known.values()):
            if repair.state == "open":
                self.fail(repair)

    def clean_up(self, now_ms: int, most: int) -> None:
        """Fail repairs that have taken too long, delete at most so many messages of failed ones, and forget old
        ones.
        """
        for repair in list(self._known.values()):
            if repair.state == "open" and now_ms > repair.until_ms:
                self.fail(repair)
        for repair in list(self._known.values()):
            if repair.state == "failed":
                most -= self._delete_held(repair, most)
            if repair.state != "open" and now_ms > repair.until_ms and most > 0:
                del self._known[repair.partition_key, repair.id]
                self._overlay.put(repair.key, None)

    def _delete_held(self, repair: Repair, most: int) -> int:
        prefix = held_prefix(repair.partition_key, repair.id)
        keys = [key for key, _ in islice(self._overlay.scan(prefix, held_end(prefix)), max(most, 0))]
        for key in keys:
            self._overlay.put(key, None)
        return len(keys)

    def _put(self, repair: Repair) -> None:
        self._known[repair.partition_key, repair.id] = repair
        self._overlay.put(repair.key, encode_repair(repair))


def read_repairs(state: StateReader | Overlay) -> Iterator[Repair]:
    """All repairs in a state."""
    for key, value in state.scan(REPAIR, REPAIR_END):
        yield decode_repair(key, value)


def encode_repair(repair: Repair) -> bytes:
    hosts = {host.hex(): part for host, part in sorted(repair.hosts.items())}
    fields = [repair.until_ms, repair.schema.hex(), repair.state, hosts]
    return VERSION_BYTE + json.dumps(fields, separators=(",", ":")).encode()


def decode_repair(key: bytes, value: bytes) -> Repair:
    check_version(value)
    until_ms, schema, state, hosts = json.loads(value[1:])
    end = 5 + int.from_bytes(key[1:5], "big")
    parts: dict[bytes, HostPart] = {
        bytes.fromhex(host): part if part in _UNENDED else Ended(*part) for host, part in hosts.items()
    }
    return Repair(key[5:end], UUID(bytes=key[end:]), until_ms, bytes.fromhex(schema), state, parts)


def is_repair_step(arrival: AnyArrival) -> TypeGuard[Arrival]:
    return type(arrival) is Arrival and arrival.message.kind in REPAIR_KINDS


def image_of_repair(arrival: AnyArrival) -> TypeGuard[Arrival]:
    """Whether it is an image that was sent for a repair; the native core takes none."""
    return type(arrival) is Arrival and is_repair_image(arrival.message)
