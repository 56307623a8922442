"""Tables with hostile names, hundreds of plain ones, and tables that cannot be published, beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

KEYSPACE_LENGTH = 48  # Cassandra's limit
KAFKA_LENGTH = 249  # of a topic
LONGEST_SUFFIX = len("cdc.dead..")  # what the longest topic of a table has beside the names of keyspace and table
COLUMNS = (
    *("select", "FROM", "Upper", "upper", "größe", "1st", "a.b", "a-b", "a_b", "a b", " edge ", "日本", "🙂", "it's"),
    *(
        '"',
        "$",
        "before",
        "after",
        "source",
        "op",
        "_x0061_",
        "a_b_x2e73",
        "key",
        "value",
        "null",
        "%s",
        "a\\b",
        "x" * 200,
    ),
)
TABLES = ("Select", "TABLE", "from", "_1", "1st", "T" * 48, "a__b", "a_b", "Raw", "tables", "dead")
NESTED = 12  # frozen lists in each other that are published
TOO_DEEP = 60
BROAD = 300  # columns
CUSTOM = "'org.apache.cassandra.db.marshal.DynamicCompositeType(s=>UTF8Type,i=>Int32Type)'"


class NamedTable(NamedTuple):
    """A table of a keyspace."""

    # The name of the keyspace.
    keyspace: str
    # The name of the table.
    name: str
    # The CQL names and types of the columns. The first one is the key.
    columns: tuple[tuple[str, str], ...] = (("k", "int"), ("v", "text"))
    # Whether CDC is on.
    is_cdc: bool = True

    @property
    def full_name(self) -> str:
        return f"{quoted(self.keyspace)}.{quoted(self.name)}"

    def create(self) -> str:
        columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in self.columns)
        key = quoted(self.columns[0][0])
        return f"CREATE TABLE {self.full_name} ({columns}, PRIMARY KEY ({key})) WITH cdc = {str(self.is_cdc).lower()}"

    def write(self, pick: random.Random) -> str:
        """Return an INSERT, UPDATE or DELETE of one of few rows."""
        row, (key, _), others = pick.randrange(4), self.columns[0], self.columns[1:]
        where = f"{quoted(key)} = {row}"
        name, kind = pick.choice(others)
        value = literal(kind, pick)
        match pick.choice("iiiud"):
            case "i":
                return f"INSERT INTO {self.full_name} ({quoted(key)}, {quoted(name)}) VALUES ({row}, {value})"
            case "u":
                return f"UPDATE {self.full_name} SET {quoted(name)} = {value} WHERE {where}"
        return f"DELETE FROM {self.full_name} WHERE {where}"

    def first(self) -> str:
        """Return an INSERT of a row that stays."""
        return f"INSERT INTO {self.full_name} ({quoted(self.columns[0][0])}) VALUES (100)"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(kind: str, pick: random.Random) -> str:
    """A value of the type: int, text, a custom type whose parts may be ints, or frozen lists of int in each other."""
    if kind == "int":
        return str(pick.randrange(3))
    if kind == "text":
        return f"'{pick.choice('abc')}'"
    if kind == CUSTOM:
        return f"'Int32Type@{pick.randrange(3)}'"
    depth = kind.count("list<")
    return "[" * depth + str(pick.randrange(3)) + "]" * depth


def nested(depth: int) -> str:
    kind = "int"
    for _ in range(depth):
        kind = f"frozen<list<{kind}>>"
    return kind


def keyspaces(seed: int) -> dict[str, str]:
    """The keyspaces by what they are for."""
    plain = f"names_{seed}"
    return {
        "plain": plain,
        "upper": f"Names_{seed}",
        "long": f"long_{seed}_".ljust(KEYSPACE_LENGTH, "k"),
        "left": f"a{seed}_b",
        "right": f"a{seed}",
    }


def good_tables(seed: int, count: int) -> Iterator[NamedTable]:
    """Those whose changes must come, whatever is beside them; `count` of them are plain."""
    names = keyspaces(seed)
    plain, upper, long = names["plain"], names["upper"], names["long"]
    yield from (NamedTable(plain, f"t{number}") for number in range(count))
    yield from (NamedTable(upper, name) for name in TABLES)
    yield NamedTable(
        plain, "columns", (("K.1", "int"), *((name, ("int", "text")[at % 2]) for at, name in enumerate(COLUMNS)))
    )
    yield NamedTable(plain, "broad", (("k", "int"), *((f"v{at}", "int") for at in range(BROAD))))
    yield NamedTable(plain, "nested", (("k", "int"), ("v", nested(NESTED))))
    yield NamedTable(long, longest_name(long))
    yield NamedTable(names["left"], "c")


def longest_name(keyspace: str, more: int = 0) -> str:
    """A table's name with which its longest topic has as many characters as Kafka allows, and some more."""
    length = KAFKA_LENGTH - LONGEST_SUFFIX - len(keyspace) + more
    return f"t{more}".ljust(length, "t")


def bad_tables(seed: int) -> Iterator[NamedTable]:
    """Those that cannot be published, and tables without cdc that cannot be read."""
    names = keyspaces(seed)
    long = names["long"]
    yield NamedTable(long, longest_name(long, more=1))
    yield NamedTable(long, longest_name(long, more=15))
    yield NamedTable(names["right"], "b_c")  # collides with c of the left keyspace
    yield NamedTable(names["plain"], "deep", (("k", "int"), ("v", nested(TOO_DEEP))))
    yield NamedTable(names["plain"], "deep_without_cdc", (("k", "int"), ("v", nested(TOO_DEEP))), is_cdc=False)
    yield NamedTable(names["plain"], "custom_without_cdc", (("k", "int"), ("n", "int"), ("v", CUSTOM)), is_cdc=False)
