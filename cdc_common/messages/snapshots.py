"""The begin and end of a snapshot: the content of `snapshot_begin` and `snapshot_end` (decision 0032)."""

from __future__ import annotations

import json
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import UUID

from cdc_common.messages.errors import MessageError, check_version

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)  # there is no version before 1

# How far a host is. `running` is a begin; `given_up`: its rows are not all sent, and are no longer awaited.
HostState: TypeAlias = Literal["running", "given_up", "ended"]
HOST_STATES: tuple[HostState, ...] = ("running", "given_up", "ended")  # a later one stands


class SnapshotStep(NamedTuple):
    """A host begins or ends its part of a snapshot."""

    # The id of the snapshot.
    snapshot: UUID
    # The ids (16 bytes) of all hosts that the snapshot expects, this one among them.
    hosts: tuple[bytes, ...]
    # How far the host is.
    state: HostState = "running"


def file_name(snapshot: UUID) -> str:
    """Return RawMessage.file of a snapshot's messages, which is also `source.file` of its changes."""
    return f"snapshot-{snapshot}"


def encode_step(step: SnapshotStep) -> bytes:
    """The `update` of a snapshot_begin or snapshot_end."""
    content = {
        "format_version": FORMAT_VERSION,
        "hosts": [str(UUID(bytes=host)) for host in step.hosts],
        "snapshot": str(step.snapshot),
        "state": step.state,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_step(update: bytes) -> SnapshotStep:
    """Decode a step. MessageError if the bytes are damaged or of a format version that this build does not read."""
    try:
        content: dict[str, Any] = json.loads(update)
        check_version(content["format_version"], READABLE_VERSIONS, "snapshot step")
        hosts = tuple(UUID(host).bytes for host in content["hosts"])
        step = SnapshotStep(UUID(content["snapshot"]), hosts, HOST_STATES[HOST_STATES.index(content["state"])])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise MessageError(f"damaged snapshot step: {type(error).__name__}") from error
    if not hosts:
        raise MessageError("damaged snapshot step: no hosts")
    return step
