"""How much of a program an error stops. Each program has a list, SCOPES in its error_pages; tests compare it with the
program.

A code may have several scopes in one program: where it is met decides. The widest comes last.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from cdc_common.errors.codes import Code

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scope(Enum):
    """The extent of an error: the part that stops or waits. The value is for people."""

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


EVERYWHERE: Mapping[Code, tuple[Scope, ...]] = {
    Code.CONFIG_UNKNOWN_KEY: (Scope.COMMAND, Scope.START),
    Code.CONFIG_INVALID: (Scope.COMMAND, Scope.START),
    Code.CONFIG_FILE: (Scope.COMMAND, Scope.START),
    Code.PORT_IN_USE: (Scope.START,),
    Code.PROGRAM_UNREACHABLE: (Scope.COMMAND,),
    Code.NOT_COMPILED: (Scope.NOTHING,),
    Code.MEMORY: (Scope.NOTHING,),
}
"""Codes of every program."""

LOCAL_STACK: Mapping[Code, tuple[Scope, ...]] = {
    Code.STACK_MISSING: (Scope.COMMAND,),
    Code.SERVER_FAILED: (Scope.COMMAND,),
    Code.CASSANDRA_UNREACHABLE: (Scope.COMMAND,),
    Code.CASSANDRA_QUERY: (Scope.COMMAND,),
}
"""Codes of the servers that the project itself starts."""
