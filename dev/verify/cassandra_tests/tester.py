"""CQLTester, the parent of Cassandra's CQL tests, as far as it sends CQL: it lists what it would send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dev.verify.cassandra_tests.cases import Operation
from dev.verify.cassandra_tests.java_values import CONSTANTS, NoValueError, formatted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dev.verify.cassandra_tests.cases import Case

MOST_STATEMENTS = 400  # of a case
IMPORTED = ("EMPTY_BYTE_BUFFER", "MAX_TTL")  # constants that tests name without their class
SECOND_KEYSPACE = "_b"  # at the end of the name of KEYSPACE_PER_TEST
_CQL = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|BEGIN|CREATE|ALTER|DROP|TRUNCATE|USE|GRANT|REVOKE|LIST|DESC\w*)\b", re.IGNORECASE
)
_REFUSED = re.compile(r"assert(?:Invalid|Unauthorized|Syntax)\w*|assert\w*Throws?\w*|assertFails\w*")
_SENT_AS_IT_IS = frozenset({"executeFormattedQuery", "schemaChange", "executeOnceInternal", "executeInternal"})
_SENT = frozenset(
    {
        *("execute", "executeNet", "executeNetWithPaging", "executeWithoutPaging", "executeMultipleNames"),
        *("alterTable", "alterTableMayThrow", "dropTable", "createIndex", "createIndexAsync", "createIndexMayThrow"),
        *("assertValidSyntax", "executeView"),
    }
)
STATIC_NAMES: Mapping[str, object] = {name: value for (_, name), value in CONSTANTS.items() if name in IMPORTED}
_NO_EFFECT = frozenset(
    {
        *(
            "flush",
            "compact",
            "cleanupCache",
            "disableCompaction",
            "enableCompaction",
            "requireNetwork",
            "waitForIndex",
        ),
        *("waitForIndexBuilds", "assumeTrue", "usePrepared", "disablePreparedReuseForTest", "beforeTest", "afterTest"),
    }
)


class Tester:
    """Lists the statements in `case`; each is of the keyspace, or of the second one, of this case."""

    def __init__(self, case: Case, keyspace: str) -> None:
        self._case = case
        self._keyspace = keyspace
        self._numbers = 0
        self._table: str | None = None
        self._second_table: str | None = None
        self._index: str | None = None
        self._calls: Mapping[str, Callable[[list[object]], object]] = {
            "createTable": self._create_table,
            "createTableMayThrow": self._create_table,
            "createTableName": lambda given: self._new_table(given[0] if given else None),
            "createType": lambda given: self._create("type", given),
            "createKeyspace": self._create_keyspace,
            "createKeyspaceName": lambda _: self._new_name("keyspace"),
            "createView": lambda given: self._create("view", given),
            "currentTable": lambda _: self._current(),
            "keyspace": lambda _: self._keyspace,
            "formatQuery": lambda given: self._format(self._texts(given)),
        }

    def names(self) -> Mapping[str, object]:
        """Return CQLTester's own constants."""
        return {"KEYSPACE": self._keyspace, "KEYSPACE_PER_TEST": self._keyspace + SECOND_KEYSPACE, **STATIC_NAMES}

    def knows(self, name: str) -> bool:
        return (
            name in self._calls
            or name in _SENT
            or name in _SENT_AS_IT_IS
            or name in _NO_EFFECT
            or _REFUSED.fullmatch(name) is not None
        )

    def call(self, name: str, arguments: list[object]) -> object:
        """Raises NoValueError for what only a server can answer."""
        if name in self._calls:
            return self._calls[name](arguments)
        if name not in _NO_EFFECT:
            self._send(arguments, is_formatted=name not in _SENT_AS_IT_IS, may_fail=bool(_REFUSED.fullmatch(name)))
        raise NoValueError(f"the answer of {name}")

    def _send(self, arguments: list[object], *, is_formatted: bool, may_fail: bool) -> None:
        at = next(
            (at for at, argument in enumerate(arguments) if isinstance(argument, str) and _CQL.match(argument)), None
        )
        if at is None:
            unknown = next((argument for argument in arguments if isinstance(argument, NoValueError)), None)
            if unknown is not None and "answer of execute" not in str(unknown):
                self._skip(unknown)
            return
        unknown = next((argument for argument in arguments[at + 1 :] if isinstance(argument, NoValueError)), None)
        if unknown is not None:
            self._skip(unknown)
            return
        text = str(arguments[at])
        keyspace = arguments[0] if at and arguments[0] == self._keyspace + SECOND_KEYSPACE else self._keyspace
        if is_formatted:
            text = self._format([str(keyspace), text])
        values = arguments[at + 1 :]
        if len(values) == 1 and isinstance(values[0], list) and text.count("?") > 1:
            values = values[0]  # an array in place of the values
        self._list(Operation(text, tuple(values), may_fail))

    def _skip(self, error: NoValueError) -> None:
        self._case.skipped[f"a statement with {error}"] += 1

    def _list(self, operation: Operation) -> None:
        if len(self._case.operations) >= MOST_STATEMENTS:
            self._case.skipped[f"a statement after {MOST_STATEMENTS}"] += 1
        elif why := operation.left_out():
            self._case.skipped[why] += 1
        else:
            self._case.operations.append(operation)

    def _texts(self, arguments: Sequence[object]) -> list[str]:
        """Return the keyspace and the text of a call that takes one or both. Raises NoValueError."""
        for argument in arguments[:2]:
            if isinstance(argument, NoValueError):
                self._skip(argument)
                raise argument
        texts = [argument for argument in arguments if isinstance(argument, str)]
        if not texts:
            raise NoValueError("a call without CQL")
        return [self._keyspace, texts[0]] if len(texts) == 1 else texts

    def _format(self, texts: list[str]) -> str:
        keyspace, text, *_ = texts
        table = self._second_table if keyspace != self._keyspace and self._second_table else self._table
        return text if table is None else formatted(text, f"{keyspace}.{table}")

    def _create_table(self, arguments: list[object]) -> object:
        texts = self._texts(arguments)
        name = self._new_table(texts[2] if len(texts) > 2 else None, keyspace=texts[0])
        self._list(Operation(self._format(texts)))
        return name

    def _new_table(self, given: object = None, keyspace: str | None = None) -> str:
        if isinstance(given, NoValueError):
            raise given
        name = str(given) if isinstance(given, str) else self._new_name("table")
        if keyspace not in {None, self._keyspace}:
            self._second_table = name
        self._table = name
        return name

    def _create(self, kind: str, arguments: list[object]) -> object:
        texts = self._texts(arguments)
        name = self._new_name(kind)
        keyspace, text = texts[0], texts[1]
        self._list(Operation(formatted(text, f"{keyspace}.{name}", f"{keyspace}.{self._table}")))
        return name

    def _create_keyspace(self, arguments: list[object]) -> object:
        name = self._new_name("keyspace")
        self._list(Operation(formatted(self._texts(arguments)[1], name)))
        return name

    def _new_name(self, kind: str) -> str:
        self._numbers += 1
        return f"{self._keyspace}_{kind}_{self._numbers}" if kind == "keyspace" else f"{kind}_{self._numbers}"

    def _current(self) -> str:
        if self._table is None:
            raise NoValueError("currentTable before a table")
        return self._table
