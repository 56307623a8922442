"""The ids of the change topics that a state's changes have gone to, as the state records them.

Kafka gives each topic an id. A topic that was deleted and created again has another one: what the state has sent is not
in it. Nothing is folded then, until `cassandra-materializer resend` has asked for all rows again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from materializer.rows.format_version import VERSION_BYTE, check_version
from materializer.rows.keys import RESEND, TOPIC_IDS
from materializer.rows.published import read_published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from materializer.rows.overlay import Overlay
    from stream_runtime.state.reader import StateReader


def read_topic_ids(state: StateReader | Overlay) -> dict[str, str]:
    """The recorded ids, by the names of the topics."""
    stored = state.get(TOPIC_IDS)
    if stored is None:
        return {}
    check_version(stored)
    return dict(json.loads(stored[1:]))


def encode_topic_ids(ids: Mapping[str, str]) -> bytes:
    return VERSION_BYTE + json.dumps(ids, separators=(",", ":"), sort_keys=True).encode()


def check_topic_ids(state: StateReader, planned: Mapping[str, str]) -> None:
    """Raise CdcError(CHANGE_TOPIC_RECREATED) if a topic that changes have gone to has another id in the plan."""
    for name, recorded in read_topic_ids(state).items():
        found = planned.get(name, recorded)
        if found != recorded:
            raise CdcError(
                Code.CHANGE_TOPIC_RECREATED,
                f"The change topic {name} was deleted and created again (id {recorded}, now {found}): the rows that it "
                "had are missing.",
                f"Look at {name} first: if its number of partitions or its settings are wrong, delete it, and the job "
                "creates it again. Then send all rows again: `cassandra-materializer resend KEYSPACE.TABLE --yes`.",
            )


def record_topic_ids(overlay: Overlay, planned: Mapping[str, str]) -> None:
    """Store the ids of the topics that changes go to now, where they are known."""
    recorded = read_topic_ids(overlay)
    names = {entry.topic.name for entry in read_published(overlay).values()}
    known = {name: recorded.get(name) or planned.get(name, "") for name in names}
    ids = {name: topic_id for name, topic_id in known.items() if topic_id}
    if ids != recorded:
        overlay.put(TOPIC_IDS, encode_topic_ids(ids) if ids else None)


def must_resend(state: StateReader | Overlay) -> bool:
    """Whether all rows are to be sent again to their topic."""
    return state.get(RESEND) is not None


def resend_writes(ids: Mapping[str, str]) -> dict[bytes, bytes | None]:
    """Return the entries that ask for all rows again, in a state whose topics have these ids now."""
    return {RESEND: VERSION_BYTE, TOPIC_IDS: encode_topic_ids(ids)}
