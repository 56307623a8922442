"""Statements that make Cassandra write every kind of update: a fixed list and random ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

KEYSPACE = "vectors"

# A CQL literal of each native type, one more, and one that is out of the ordinary.
NATIVE = {
    "ascii": ("'a'", "'plain'", "''"),
    "bigint": ("1", "9223372036854775807", "-1"),
    "blob": ("0x00", "0xcafebabe", "0x"),
    "boolean": ("true", "false", "true"),
    "date": ("'2024-02-29'", "'1970-01-01'", "'-0001-01-01'"),
    "decimal": ("1.00", "-12345678901234567890.123456789", "1e10"),
    "double": ("1.5", "-0.0", "NaN"),
    "duration": ("1mo2d3ns", "-1y", "0s"),
    "float": ("1.5", "Infinity", "-0.0"),
    "inet": ("'127.0.0.1'", "'::1'", "'255.255.255.255'"),
    "int": ("1", "2147483647", "-1"),
    "smallint": ("1", "32767", "-1"),
    "text": ("'text'", "'äöü€😀'", "''"),
    "time": ("'08:12:54.123456789'", "'00:00:00'", "'23:59:59.999999999'"),
    "timestamp": ("'2024-02-29 12:00:00.123+0000'", "0", "-1"),
    "timeuuid": (
        "50554d6e-29bb-11e5-b345-feff819cdc9f",
        "00000000-0000-1000-8080-808080808080",
        "ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f",
    ),
    "tinyint": ("1", "127", "-1"),
    "uuid": (
        "123e4567-e89b-12d3-a456-426655440000",
        "00000000-0000-4000-8000-000000000000",
        "ffffffff-ffff-4fff-bfff-ffffffffffff",
    ),
    "varint": ("1", "123456789012345678901234567890", "-1"),
    "vector<float, 3>": ("[1, 2, 3]", "[0, -0.5, 1e10]", "[0, 0, 0]"),
    "vector<text, 2>": ("['a', 'b']", "['', 'ä']", "['', '']"),
}
KEY_TYPES = [cql for cql in NATIVE if cql != "duration" and not cql.startswith("vector")]
WIDE = 70  # columns: from 64 on a subset is a list


def _name(cql: str) -> str:
    return "v_" + "".join(c if c.isalnum() else "_" for c in cql)


def _columns(types: list[str], prefix: str = "") -> str:
    return ", ".join(f"{prefix}{_name(cql)} {cql}" for cql in types)


def schema() -> Iterator[str]:
    yield f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    yield "CREATE TYPE address (street text, zip int, tags frozen<set<text>>)"
    yield "CREATE TYPE person (name text, home frozen<address>)"
    yield f"CREATE TABLE natives (id int PRIMARY KEY, {_columns(list(NATIVE))}) WITH cdc = true"
    keys = ", ".join("k_" + _name(cql) for cql in KEY_TYPES)
    order = ", ".join(f"k_{_name(cql)} {'DESC' if i % 2 else 'ASC'}" for i, cql in enumerate(KEY_TYPES))
    yield (
        f"CREATE TABLE keys (id int, {_columns(KEY_TYPES, 'k_')}, v text, PRIMARY KEY (id, {keys})) "
        f"WITH CLUSTERING ORDER BY ({order}) AND cdc = true"
    )
    yield (
        "CREATE TABLE wide (p text, q int, a int, b text, c timeuuid, s text static, t set<int> static, v int, w text, "
        "m map<text, int>, PRIMARY KEY ((p, q), a, b, c)) WITH CLUSTERING ORDER BY (a ASC, b DESC, c ASC) "
        "AND cdc = true"
    )
    yield (
        "CREATE TABLE collections (id int, c int, l list<text>, s set<int>, m map<text, bigint>, "
        "lu list<frozen<address>>, mm map<int, frozen<map<text, int>>>, u address, up person, "
        "fl frozen<list<int>>, fs frozen<set<text>>, fm frozen<map<int, text>>, fu frozen<person>, "
        "tu tuple<int, text, frozen<list<int>>>, n map<text, text>, plain int, PRIMARY KEY (id, c)) WITH cdc = true"
    )
    yield (
        "CREATE TABLE counters (id int, c text, n counter, o counter, st counter static, PRIMARY KEY (id, c)) "
        "WITH cdc = true"
    )
    yield (
        f"CREATE TABLE broad (id int, c int, {', '.join(f'c{i:02} int' for i in range(WIDE))}, "
        f"{', '.join(f's{i:02} int static' for i in range(5))}, PRIMARY KEY (id, c)) WITH cdc = true"
    )
    yield (
        'CREATE TABLE "QuotedName" (id int PRIMARY KEY, "Mixed Case" text, "ä€" int, gone int, back int) '
        "WITH cdc = true"
    )
    yield "CREATE TABLE plain (id int, c int, v int, PRIMARY KEY (id, c))"
    yield "CREATE TABLE viewed (id int PRIMARY KEY, v int, w int) WITH cdc = true"
    yield (
        "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM viewed WHERE v IS NOT NULL AND id IS NOT NULL "
        "PRIMARY KEY (v, id)"
    )


def fixed() -> Iterator[str]:
    """Every kind of update, in order. Without a timestamp of their own: the statements must come one by one."""
    yield from _natives()
    yield from _wide()
    yield from _collections()
    yield from _others()


def _natives() -> Iterator[str]:
    names = ", ".join(map(_name, NATIVE))
    for choice in range(3):
        values = ", ".join(literals[choice] for literals in NATIVE.values())
        yield f"INSERT INTO natives (id, {names}) VALUES ({choice}, {values})"
    for index, (cql, literals) in enumerate(NATIVE.items()):
        yield f"UPDATE natives SET {_name(cql)} = {literals[index % 3]} WHERE id = {100 + index}"
    yield f"DELETE {names} FROM natives WHERE id = 1"
    yield "UPDATE natives USING TIMESTAMP -5 SET v_int = 7 WHERE id = 200"
    yield "UPDATE natives USING TIMESTAMP 9223372036854775807 SET v_int = 7 WHERE id = 201"
    yield "INSERT INTO natives (id) VALUES (300)"
    keys = ", ".join("k_" + _name(cql) for cql in KEY_TYPES)
    for choice in range(3):
        values = ", ".join(NATIVE[cql][choice] for cql in KEY_TYPES)
        yield f"INSERT INTO keys (id, {keys}, v) VALUES ({choice}, {values}, 'v')"
    first, second = KEY_TYPES[:2]
    yield f"DELETE FROM keys WHERE id = 1 AND k_{_name(first)} = 'plain' AND k_{_name(second)} > 3"


def _wide() -> Iterator[str]:
    key = "p = 'p' AND q = 1"
    uuid = "50554d6e-29bb-11e5-b345-feff819cdc9f"
    for a in range(6):
        yield f"INSERT INTO wide (p, q, a, b, c, v, w) VALUES ('p', 1, {a}, 'b', {uuid}, {a}, 'w')"
    yield "INSERT INTO wide (p, q, s, t) VALUES ('p', 1, 'static', {1, 2})"
    yield f"UPDATE wide SET t = t - {{1}}, s = null WHERE {key}"
    yield "INSERT INTO wide (p, q, s) VALUES ('only static', 1, 's')"
    yield (
        f"INSERT INTO wide (p, q, a, b, c, s, v, m) VALUES ('p', 1, 9, '', {uuid}, 'both', 1, {{'k': 1}}) "
        "USING TTL 86400"
    )
    yield f"UPDATE wide USING TTL 1 SET v = 1 WHERE {key} AND a = 10 AND b = 'x' AND c = {uuid}"
    yield f"DELETE FROM wide WHERE {key} AND a = 0 AND b = 'b' AND c = {uuid}"
    yield f"DELETE v, m FROM wide WHERE {key} AND a = 1 AND b = 'b' AND c = {uuid}"
    yield f"DELETE FROM wide WHERE {key} AND a = 2"
    yield f"DELETE FROM wide WHERE {key} AND a > 2 AND a <= 3"
    yield f"DELETE FROM wide WHERE {key} AND a >= 100"
    yield f"DELETE FROM wide WHERE {key} AND a = 4 AND b > 'c'"
    yield (
        f"BEGIN BATCH DELETE FROM wide USING TIMESTAMP 10 WHERE {key} AND a >= 20 AND a < 30; "
        f"DELETE FROM wide USING TIMESTAMP 20 WHERE {key} AND a >= 30 AND a <= 40; "
        f"DELETE FROM wide USING TIMESTAMP 30 WHERE {key} AND a > 40 AND a < 50; "
        f"UPDATE wide USING TIMESTAMP 40 SET v = 1 WHERE {key} AND a = 35 AND b = 'in' AND c = {uuid}; APPLY BATCH"
    )
    rows = "; ".join(
        f"INSERT INTO wide (p, q, a, b, c, v) VALUES ('many', 1, {a}, 'b', {uuid}, {a}) USING TIMESTAMP {1000 + a}"
        for a in range(50)
    )
    yield f"BEGIN UNLOGGED BATCH {rows}; APPLY BATCH"
    yield (
        "BEGIN BATCH DELETE FROM wide USING TIMESTAMP 5 WHERE p = 'all' AND q = 1; "
        "UPDATE wide USING TIMESTAMP 6 SET s = 's' WHERE p = 'all' AND q = 1; "
        "DELETE FROM wide USING TIMESTAMP 7 WHERE p = 'all' AND q = 1 AND a = 1; "
        f"INSERT INTO wide (p, q, a, b, c, v) VALUES ('all', 1, 1, 'b', {uuid}, 1) USING TIMESTAMP 8; "
        f"INSERT INTO wide (p, q, a, b, c, v) VALUES ('all', 1, 2, 'b', {uuid}, 1) USING TIMESTAMP 9; APPLY BATCH"
    )
    yield f"INSERT INTO wide (p, q, a, b, c, v) VALUES ('gone', 1, 1, 'b', {uuid}, 1)"
    yield "DELETE FROM wide WHERE p = 'gone' AND q = 1"
    yield (
        f"BEGIN BATCH DELETE FROM wide USING TIMESTAMP 50 WHERE {key} AND a = 60 AND b = 'b' AND c = {uuid}; "
        f"UPDATE wide USING TIMESTAMP 51 SET v = 60 WHERE {key} AND a = 60 AND b = 'b' AND c = {uuid}; APPLY BATCH"
    )


def _collections() -> Iterator[str]:
    key = "id = 1 AND c = 1"
    yield (
        "INSERT INTO collections (id, c, l, s, m, lu, mm, u, up, fl, fs, fm, fu, tu, n, plain) VALUES (1, 1, "
        "['a', 'b', 'c'], {3, 1, 2}, {'x': 1, 'y': 2}, [{street: 's', zip: 1}], {1: {'a': 1}, 2: {}}, "
        "{street: 'main', zip: 5, tags: {'t'}}, {name: 'n', home: {street: 'h'}}, [1, 2], {'q'}, {1: 'one'}, "
        "{name: 'f', home: {zip: 3}}, (1, 'two', [3]), {'': ''}, 1)"
    )
    yield f"UPDATE collections SET l = l + ['d'], s = s + {{9}}, m['z'] = 26 WHERE {key}"
    yield f"UPDATE collections SET l = ['z'] + l WHERE {key}"
    yield f"UPDATE collections SET l[1] = 'second' WHERE {key}"
    yield f"DELETE l[0] FROM collections WHERE {key}"
    yield f"UPDATE collections SET m = m - {{'x'}}, s = s - {{1}} WHERE {key}"
    yield f"UPDATE collections SET u.zip = 6, up.name = null WHERE {key}"
    yield f"UPDATE collections USING TTL 86400 SET m['ttl'] = 1, n['ttl'] = 'x' WHERE {key}"
    yield f"UPDATE collections SET m = {{'whole': 1}}, plain = 2 WHERE {key}"
    yield f"UPDATE collections SET s = {{}}, n = null WHERE {key}"
    yield "INSERT INTO collections (id, c, l, s) VALUES (2, 2, [], {})"
    yield "UPDATE collections SET fl = [], fs = {}, fm = {}, tu = (null, null, null) WHERE id = 3 AND c = 3"
    yield "DELETE l, u, m FROM collections WHERE id = 3 AND c = 3"
    yield "UPDATE collections SET u = null, up = {name: 'again'} WHERE id = 1 AND c = 1"


def _others() -> Iterator[str]:
    yield "UPDATE counters SET n = n + 5, o = o - 1 WHERE id = 1 AND c = 'a'"
    yield "UPDATE counters SET n = n + 1 WHERE id = 1 AND c = 'a'"
    yield "UPDATE counters SET st = st + 3 WHERE id = 1"
    yield "UPDATE counters SET n = n + 1 WHERE id = 2 AND c = 'b'"
    yield "DELETE n FROM counters WHERE id = 2 AND c = 'b'"
    yield "DELETE FROM counters WHERE id = 3 AND c = 'c'"
    all_columns = ", ".join(f"c{i:02}" for i in range(WIDE))
    yield f"INSERT INTO broad (id, c, {all_columns}) VALUES (1, 1, {', '.join(map(str, range(WIDE)))})"
    yield "INSERT INTO broad (id, c, c00, c69) VALUES (1, 2, 1, 2)"
    # One update whose rows have few, many and all of its 70 columns.
    most = [f"c{i:02}" for i in range(WIDE) if i not in (3, 40)]
    yield (
        f"BEGIN BATCH INSERT INTO broad (id, c, {all_columns}) VALUES (2, 1, {', '.join(map(str, range(WIDE)))}); "
        "UPDATE broad SET c00 = 1, c33 = 2, c69 = 3 WHERE id = 2 AND c = 2; "
        f"INSERT INTO broad (id, c, {', '.join(most)}) VALUES (2, 3, {', '.join('7' for _ in most)}); "
        "INSERT INTO broad (id, c) VALUES (2, 4); UPDATE broad SET s00 = 1, s04 = 2 WHERE id = 2; APPLY BATCH"
    )
    yield """INSERT INTO "QuotedName" (id, "Mixed Case", "ä€", gone, back) VALUES (1, 'x', 2, 3, 4)"""
    yield """ALTER TABLE "QuotedName" DROP gone"""
    yield """ALTER TABLE "QuotedName" DROP back"""
    yield """ALTER TABLE "QuotedName" ADD back int"""
    yield """UPDATE "QuotedName" SET back = 5 WHERE id = 2"""
    yield (  # one mutation of three tables, one of them without CDC
        "BEGIN BATCH INSERT INTO plain (id, c, v) VALUES (1, 1, 1); INSERT INTO broad (id, c, c00) VALUES (1, 9, 9); "
        "INSERT INTO collections (id, c, plain) VALUES (1, 9, 9); APPLY BATCH"
    )
    yield "INSERT INTO viewed (id, v, w) VALUES (1, 1, 1)"
    yield "UPDATE viewed SET v = 2 WHERE id = 1"
    yield "UPDATE viewed SET v = 1, w = 2 WHERE id = 1"
    yield "UPDATE viewed USING TTL 86400 SET v = 3 WHERE id = 1"
    yield "DELETE FROM viewed WHERE id = 1"
    yield "INSERT INTO viewed (id, v) VALUES (2, 2) IF NOT EXISTS"
    yield "UPDATE viewed SET w = 5 WHERE id = 2 IF v = 2"


def filling(size: int) -> Iterator[str]:
    """Some bytes more than `size` that compress well."""
    for _ in range(0, size, 60_000):
        yield f"UPDATE natives SET v_blob = 0x{'00' * 60_000} WHERE id = 400"


def random_statements(seed: int, count: int) -> Iterator[str]:
    """Statements over few partitions with timestamps and TTLs that clash; reproducible by the seed."""
    rng = random.Random(seed)
    makers: list[Callable[[random.Random], str]] = [
        _random_native,
        _random_wide,
        _random_wide_delete,
        _random_collection,
        _random_broad,
    ]
    for _ in range(count):
        if rng.random() < 0.2:
            statements = [rng.choice(makers)(rng) for _ in range(rng.randint(2, 12))]
            yield f"BEGIN UNLOGGED BATCH {'; '.join(statements)}; APPLY BATCH"
        else:
            yield rng.choice(makers)(rng)


def _using(rng: random.Random, *, ttl: bool = True) -> str:
    timestamp = rng.choice((rng.randint(1, 50), 1_700_000_000_000_000 + rng.randint(0, 1000), -rng.randint(1, 5)))
    seconds = rng.choice((0, 0, 1, 86_400, 200_000_000)) if ttl else 0
    return f"USING TIMESTAMP {timestamp}" + (f" AND TTL {seconds}" if seconds else "")


def _random_native(rng: random.Random) -> str:
    chosen = rng.sample(list(NATIVE), rng.randint(1, len(NATIVE)))
    values = [rng.choice((*NATIVE[cql], "null")) for cql in chosen]
    names = list(map(_name, chosen))
    if rng.random() < 0.5:
        key = rng.randint(1, 20)
        return f"INSERT INTO natives (id, {', '.join(names)}) VALUES ({key}, {', '.join(values)}) {_using(rng)}"
    pairs = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
    return f"UPDATE natives {_using(rng)} SET {pairs} WHERE id = {rng.randint(1, 20)}"


def _random_key(rng: random.Random) -> str:
    return f"p = '{rng.choice('xyz')}' AND q = {rng.randint(0, 1)}"


def _random_uuid(rng: random.Random) -> str:
    return rng.choice(NATIVE["timeuuid"])


def _random_wide(rng: random.Random) -> str:
    sets = rng.sample(
        [
            f"v = {rng.choice(('null', '1', '-7'))}",
            f"w = {rng.choice(('null', repr(''), repr('long' * 50)))}",
            rng.choice(("m = null", "m = {'a': 1, 'b': 2}", "m['k'] = 5", "m = m - {'a'}", "m['a'] = null")),
            rng.choice(("s = 'st'", "s = null")),
            rng.choice(("t = {1, 5}", "t = t + {7}", "t = null", "t = t - {1}")),
        ],
        rng.randint(1, 5),
    )
    where = f"{_random_key(rng)} AND a = {rng.randint(0, 9)} AND b = '{rng.choice('abc')}' AND c = {_random_uuid(rng)}"
    if all(one[0] in "st" for one in sets):
        where = _random_key(rng)
    return f"UPDATE wide {_using(rng)} SET {', '.join(sets)} WHERE {where}"


def _random_wide_delete(rng: random.Random) -> str:
    low = rng.randint(0, 9)
    high = low + rng.randint(0, 3)
    range_ = rng.choice(
        (
            "",
            f"AND a = {low}",
            f"AND a {rng.choice(('>', '>='))} {low}",
            f"AND a >= {low} AND a {rng.choice(('<', '<='))} {high}",
            f"AND a = {low} AND b {rng.choice(('>', '<=', '='))} 'b'",
            f"AND a = {low} AND b = 'b' AND c = {_random_uuid(rng)}",
        )
    )
    return f"DELETE FROM wide {_using(rng, ttl=False)} WHERE {_random_key(rng)} {range_}"


def _random_collection(rng: random.Random) -> str:
    sets = rng.sample(
        [
            rng.choice(("l = ['a', 'b']", "l = l + ['c']", "l = ['p'] + l", "l = null")),
            rng.choice(("s = {1, 2}", "s = s + {5, 6}", "s = s - {1}", "s = {}")),
            rng.choice(("m = {'x': 1}", "m['y'] = 2", "m = m - {'x', 'q'}", "m = null")),
            rng.choice(("u = {street: 's'}", "u.zip = 5", "u.street = null", "u = null")),
            rng.choice(("fl = [1, 2, 3]", "fl = null")),
            rng.choice(("fu = {name: 'n'}", "tu = (1, null, [])")),
            "plain = 1",
        ],
        rng.randint(1, 5),
    )
    where = f"id = {rng.randint(1, 4)} AND c = {rng.randint(1, 3)}"
    return f"UPDATE collections {_using(rng)} SET {', '.join(sets)} WHERE {where}"


def _random_broad(rng: random.Random) -> str:
    names = [f"c{i:02}" for i in sorted(rng.sample(range(WIDE), rng.choice((1, 5, 34, 35, 36, 69, 70))))]
    values = ", ".join(rng.choice(("1", "null")) for _ in names)
    return (
        f"INSERT INTO broad (id, c, {', '.join(names)}) VALUES ({rng.randint(1, 3)}, {rng.randint(1, 3)}, {values}) "
        f"{_using(rng)}"
    )
