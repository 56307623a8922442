"""All formats whose vectors a release freezes."""

from __future__ import annotations

from tests.support.frozen import (
    cassandra_tables,
    joins,
    messages,
    publisher_files,
    registry,
    state_values,
    states,
    stored_files,
)

FORMATS = (
    *messages.FORMATS,
    *states.FORMATS,
    *state_values.FORMATS,
    *stored_files.FORMATS,
    *publisher_files.FORMATS,
    *registry.FORMATS,
    *cassandra_tables.FORMATS,
    *joins.FORMATS,
)
