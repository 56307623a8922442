"""The begin and end of a Cassandra partition's repair: the content of `reset` and `reset_end` (decision 0041)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from cdc_common.messages.errors import MessageError, check_version
from cdc_common.messages.raw import IMAGE_KINDS
from cdc_common.messages.snapshots import HOST_STATES, HostState

if TYPE_CHECKING:
    from cdc_common.messages.raw import RawMessage

FORMAT_VERSION = 1
READABLE_VERSIONS = range(1, FORMAT_VERSION + 1)  # there is no version before 1

_PREFIX = "repair-"


class RepairStep(NamedTuple):
    """A host begins to send its images of a Cassandra partition, or ends."""

    # The id of the repair.
    repair: UUID
    # The ids (16 bytes) of all hosts that the repair expects, this one among them.
    hosts: tuple[bytes, ...]
    # The time of the brokers, in ms, after which the repair changes nothing.
    until_ms: int
    # How far the host is.
    state: HostState = "running"
    # Of an end, the position in the host's log (segment, position) up to which the images have all that it wrote.
    flushed_to: tuple[int, int] = (0, 0)
    # Of an end, the number of nodes of the datacenter that have the Cassandra partition, as the host saw it when its
    # images were taken; 0 if the host is none of them and sends no images.
    replicas: int = 0


def file_name(repair: UUID) -> str:
    """Return RawMessage.file of a repair's messages, which is also `source.file` of its changes."""
    return f"{_PREFIX}{repair}"


def is_repair_image(message: RawMessage) -> bool:
    """Whether it is an image that was sent for a repair, which only that repair may use."""
    return message.kind in IMAGE_KINDS and message.file.startswith(_PREFIX)


def encode_step(step: RepairStep) -> bytes:
    """The `update` of a reset or reset_end."""
    content = {
        "format_version": FORMAT_VERSION,
        "repair": str(step.repair),
        "hosts": [str(UUID(bytes=host)) for host in step.hosts],
        "until_ms": step.until_ms,
        "state": step.state,
        "flushed_to": step.flushed_to,
        "replicas": step.replicas,
    }
    return json.dumps(content, separators=(",", ":")).encode()


def decode_step(update: bytes) -> RepairStep:
    """Decode a step. MessageError if the bytes are damaged or of a format version that this build does not read."""
    try:
        content: dict[str, Any] = json.loads(update)
        check_version(content["format_version"], READABLE_VERSIONS, "repair step")
        segment, position = content["flushed_to"]
        step = RepairStep(
            UUID(content["repair"]),
            tuple(UUID(host).bytes for host in content["hosts"]),
            int(content["until_ms"]),
            HOST_STATES[HOST_STATES.index(content["state"])],
            (int(segment), int(position)),
            int(content.get("replicas", 0)),  # none: of the publisher's version before; the repair changes nothing
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise MessageError(f"damaged repair step: {type(error).__name__}") from error
    if not step.hosts:
        raise MessageError("damaged repair step: no hosts")
    return step
