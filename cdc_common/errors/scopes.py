"""How much of each program an error stops: the list for docs/reference/errors.md. Tests compare it with the programs.

A code may have several scopes in one program: where it is met decides. The widest comes last.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scope(Enum):
    """What stops or waits. The value is for people."""

    NOTHING = "nothing: a warning or an alert"
    COMMAND = "a command that somebody runs"
    REQUEST = "one request"
    MESSAGE = "one message, mutation or row"
    RAW_PARTITION = "one raw partition"
    TOPIC = "one topic"
    TABLE = "one table"
    WAITS = "all of the program, which waits and goes on by itself"
    START = "the start of the program"
    PROGRAM = "all of the program, which ends"


_SETTINGS: Mapping[Code, tuple[Scope, ...]] = {
    Code.CONFIG_UNKNOWN_KEY: (Scope.COMMAND, Scope.START),
    Code.CONFIG_INVALID: (Scope.COMMAND, Scope.START),
    Code.CONFIG_FILE: (Scope.COMMAND, Scope.START),
    Code.PORT_IN_USE: (Scope.START,),
    Code.PROGRAM_UNREACHABLE: (Scope.COMMAND,),
    Code.NOT_COMPILED: (Scope.NOTHING,),
    Code.MEMORY: (Scope.NOTHING,),
}
"""Codes of every program."""

_PUBLISHER: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_AUTH: (Scope.START, Scope.PROGRAM),
    Code.CASSANDRA_QUERY: (Scope.START, Scope.PROGRAM),
    Code.CDC_DISABLED: (Scope.START,),
    Code.CDC_RAW_MISSING: (Scope.START, Scope.PROGRAM),
    Code.NODETOOL_FAILED: (Scope.COMMAND,),
    Code.CHANGES_WOULD_BE_LOST: (Scope.NOTHING, Scope.START),
    Code.SPOOLING: (Scope.NOTHING,),
    Code.SEGMENTS_STUCK: (Scope.NOTHING, Scope.START),
    Code.KAFKA_UNREACHABLE: (Scope.TABLE, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.TABLE, Scope.START, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TABLE, Scope.START),
    Code.TOPIC_NAMES_COLLIDE: (Scope.TABLE,),
    Code.TOPIC_NAME: (Scope.TABLE,),
    Code.TOPIC_PREFIX_TAKEN: (Scope.START,),
    Code.REGISTRY_UNREACHABLE: (Scope.TABLE, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.TABLE, Scope.START),
    Code.MESSAGE_TOO_LARGE: (Scope.TABLE,),
    Code.SEGMENT_CORRUPT: (Scope.PROGRAM,),
    Code.SEGMENT_UNSUPPORTED: (Scope.PROGRAM,),
    Code.POSITION_FILE: (Scope.START, Scope.PROGRAM),
    Code.SCHEMA_UNKNOWN: (Scope.MESSAGE, Scope.TABLE),
    Code.LOG_ENCRYPTED: (Scope.START,),
    Code.KEYSTORE: (Scope.START,),
    Code.CDC_RAW_FILLING: (Scope.NOTHING,),
    Code.CDC_RAW_WAS_FULL: (Scope.NOTHING,),
    Code.QUARANTINED: (Scope.MESSAGE,),
    Code.QUARANTINE_FULL: (Scope.TABLE, Scope.PROGRAM),
    Code.TABLE_WAITS: (Scope.TABLE,),
    Code.TABLE_NOT_PUBLISHED: (Scope.COMMAND, Scope.TABLE),
    Code.TABLE_CDC_DISABLED: (Scope.NOTHING,),
    Code.NEEDS_SNAPSHOT: (Scope.NOTHING,),
    Code.SEGMENT_LOST: (Scope.NOTHING,),
    Code.SNAPSHOT_GIVEN_UP: (Scope.COMMAND,),
    Code.SNAPSHOT_STALLED: (Scope.NOTHING,),
}

_FILLER: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_AUTH: (Scope.WAITS, Scope.START),
    Code.CASSANDRA_QUERY: (Scope.WAITS, Scope.START),
    Code.CDC_DISABLED: (Scope.WAITS, Scope.START),
    Code.CDC_RAW_MISSING: (Scope.WAITS, Scope.START),
    Code.SEGMENT_CORRUPT: (Scope.WAITS, Scope.START),
    Code.NODETOOL_FAILED: (Scope.WAITS,),
    Code.FILLER_PAUSED: (Scope.WAITS,),
}

_MATERIALIZER: Mapping[Code, tuple[Scope, ...]] = {
    Code.CASSANDRA_UNREACHABLE: (Scope.COMMAND,),
    Code.CASSANDRA_AUTH: (Scope.COMMAND,),
    Code.CASSANDRA_QUERY: (Scope.COMMAND,),
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TOPIC,),
    Code.TOPIC_NAMES_COLLIDE: (Scope.TOPIC,),
    Code.TOPIC_PREFIX_TAKEN: (Scope.TOPIC,),
    Code.REGISTRY_UNREACHABLE: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.SCHEMA_UNKNOWN: (Scope.RAW_PARTITION,),
    Code.RAW_SKIPPED: (Scope.RAW_PARTITION,),
    Code.STATE_MISMATCH: (Scope.RAW_PARTITION,),
    Code.STATE_DAMAGED: (Scope.RAW_PARTITION,),
    Code.STATE_FORMAT: (Scope.RAW_PARTITION,),
    Code.RAW_PARTITIONS_CHANGED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.CLOCK_AHEAD: (Scope.RAW_PARTITION,),
    Code.RAW_MESSAGE_UNREADABLE: (Scope.RAW_PARTITION,),
    Code.NOT_SUPPORTED: (Scope.RAW_PARTITION,),
    Code.TOO_MANY_DEAD_LETTERS: (Scope.RAW_PARTITION,),
    Code.MESSAGE_TOO_LARGE: (Scope.RAW_PARTITION,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.DEAD_LETTERED: (Scope.MESSAGE,),
    Code.KEY_NOT_REPRESENTABLE: (Scope.MESSAGE,),
    Code.NEEDS_SNAPSHOT: (Scope.NOTHING,),
    Code.TOPIC_VERSION: (Scope.NOTHING,),
    Code.PUBLISHER_STALLED: (Scope.NOTHING,),
    Code.NOT_TRUNCATED: (Scope.NOTHING,),
    Code.CHANGE_TOPIC_RECREATED: (Scope.RAW_PARTITION,),
    Code.CHECKPOINT_LOCATION: (Scope.RAW_PARTITION, Scope.START),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}

_TRANSFORMER: Mapping[Code, tuple[Scope, ...]] = {
    Code.KAFKA_UNREACHABLE: (Scope.RAW_PARTITION, Scope.WAITS, Scope.START),
    Code.KAFKA_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.PROGRAM),
    Code.TOPIC_SETTINGS: (Scope.TOPIC,),
    Code.REGISTRY_UNREACHABLE: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.REGISTRY_REFUSED: (Scope.RAW_PARTITION, Scope.TOPIC, Scope.START),
    Code.TRANSFORM_FAILED: (Scope.RAW_PARTITION,),
    Code.TRANSFORM_STEP: (Scope.TOPIC, Scope.START),
    Code.TRANSFORM_SOURCE: (Scope.RAW_PARTITION,),
    Code.TRANSFORM_REPEATED: (Scope.RAW_PARTITION,),
    Code.TRANSACTION_EXPIRED: (Scope.RAW_PARTITION,),
    Code.UNEXPECTED: (Scope.RAW_PARTITION, Scope.TOPIC),
    Code.RAW_PARTITION_STOPPED: (Scope.RAW_PARTITION,),
    Code.CHECKPOINT_LOCATION: (Scope.START,),
    Code.SPARK_SETTING: (Scope.START,),
    Code.SPARK_FAILED: (Scope.PROGRAM,),
    Code.TRANSACTION_TIMEOUT: (Scope.PROGRAM,),
}

_SCHEMATIZER: Mapping[Code, tuple[Scope, ...]] = {
    Code.REGISTRY_UNREACHABLE: (Scope.COMMAND,),
    Code.REGISTRY_REFUSED: (Scope.COMMAND,),
    Code.REGISTRY_DATABASE: (Scope.COMMAND, Scope.REQUEST, Scope.START),
    Code.BACKUP: (Scope.COMMAND,),
    Code.DOCUMENTATION: (Scope.COMMAND,),
    Code.CLIENTS_LATE: (Scope.NOTHING,),
    Code.REGISTRY_KEY: (Scope.COMMAND, Scope.START),
    Code.REGISTRY_OPEN: (Scope.START,),
    Code.REGISTRY_CERTIFICATE: (Scope.NOTHING, Scope.START),
    Code.REGISTRY_ISSUER: (Scope.REQUEST, Scope.START),
}

_LOCAL_STACK: Mapping[Code, tuple[Scope, ...]] = {
    Code.STACK_MISSING: (Scope.COMMAND,),
    Code.SERVER_FAILED: (Scope.COMMAND,),
    Code.CASSANDRA_UNREACHABLE: (Scope.COMMAND,),
    Code.CASSANDRA_QUERY: (Scope.COMMAND,),
}

SCOPES: Mapping[str, Mapping[Code, tuple[Scope, ...]]] = MappingProxyType(
    {
        "publisher": {**_SETTINGS, **_PUBLISHER},
        "filler": {**_SETTINGS, **_FILLER},
        "materializer": {**_SETTINGS, **_MATERIALIZER},
        "transformer": {**_SETTINGS, **_TRANSFORMER},
        "schematizer": {**_SETTINGS, **_SCHEMATIZER},
        "local_stack": {**_SETTINGS, **_LOCAL_STACK},
    }
)
"""The scopes of each code by program."""

_EVERYWHERE = frozenset(_SETTINGS)


def scope_table() -> str:
    """A Markdown table: what each code stops, by program. Codes of every program have one row for all."""
    rows = ["| code | program | what stops or waits |", "| --- | --- | --- |"]
    for code in sorted(Code, key=lambda code: code.text):
        if code in _EVERYWHERE:
            rows.append(f"| {code.text} | each | {_words(_SETTINGS[code])} |")
            continue
        rows += [
            f"| {code.text} | {program} | {_words(scopes[code])} |"
            for program, scopes in SCOPES.items()
            if code in scopes
        ]
    return "\n".join(rows)


def _words(scopes: tuple[Scope, ...]) -> str:
    return "; or ".join(scope.value for scope in scopes)
