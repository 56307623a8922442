"""The demo's story: statements one at a time, each with the changes that must come out of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from dev.local_stack.demo import shop

HOUR = 3600
TTL = 6


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of the story."""

    # The words that say what it shows.
    caption: str
    # The CQL text.
    statement: str
    # The table and the op of each change that must come, in any order.
    changes: tuple[tuple[str, str], ...] = ()


STORY = (
    Step(
        "An INSERT. There was no row before.",
        "INSERT INTO shop.orders (id, customer, status, total, lines)"
        " VALUES (<order>, '<name>', 'new', 42.50, {'tea': 2})",
        (("shop.orders", "c"),),
    ),
    Step(
        "An UPDATE of one column. The log holds that column alone, the change the whole row before and after.",
        "UPDATE shop.orders SET status = 'paid' WHERE id = <order>",
        (("shop.orders", "u"),),
    ),
    Step(
        "A late write: its timestamp is an hour old. It changes only what it still wins: note, not status.",
        "UPDATE shop.orders USING TIMESTAMP <earlier> SET status = 'cancelled', note = 'gift' WHERE id = <order>",
        (("shop.orders", "u"),),
    ),
    Step(
        "A late write that wins nothing.",
        "UPDATE shop.orders USING TIMESTAMP <earlier> SET status = 'draft', note = 'card' WHERE id = <order>",
    ),
    Step(
        "A batch over two tables: one change in each.",
        "BEGIN BATCH"
        " INSERT INTO shop.stock (warehouse, product, amount, price) VALUES ('north', '<name>''s tea', 98, 4.25);"
        " INSERT INTO shop.customers (name, email, home, tags)"
        " VALUES ('<name>', '<name>@example.org', {street: 'Rue 1', city: 'Lyon'}, {'new'}); "
        "APPLY BATCH",
        (("shop.stock", "c"), ("shop.customers", "c")),
    ),
    Step(
        "One element added to a set and one field of a user type changed. The log holds just these two cells.",
        "UPDATE shop.customers SET tags = tags + {'vip'}, home.city = 'Paris' WHERE name = '<name>'",
        (("shop.customers", "u"),),
    ),
    Step(
        "An element removed from the set. The log holds one tombstone.",
        "UPDATE shop.customers SET tags = tags - {'new'} WHERE name = '<name>'",
        (("shop.customers", "u"),),
    ),
    Step(
        "A TTL of <ttl> seconds. The second change comes by itself, when they are over.",
        "UPDATE shop.customers USING TTL <ttl> SET joined = '2026-01-01' WHERE name = '<name>'",
        (("shop.customers", "u"),) * 2,
    ),
    Step(
        "A batch of three rows in one partition: one mutation, three changes.",
        "BEGIN UNLOGGED BATCH"
        " INSERT INTO shop.stock (warehouse, product, amount) VALUES ('<name>', 'cup', 1);"
        " INSERT INTO shop.stock (warehouse, product, amount) VALUES ('<name>', 'pot', 2);"
        " INSERT INTO shop.stock (warehouse, product, amount) VALUES ('<name>', 'tea', 3); "
        "APPLY BATCH",
        (("shop.stock", "c"),) * 3,
    ),
    Step(
        "A static column is part of each row of its partition: a change of it is an update of them all.",
        "UPDATE shop.stock SET manager = 'grace' WHERE warehouse = '<name>'",
        (("shop.stock", "u"),) * 3,
    ),
    Step(
        "A DELETE of a range: one tombstone in the log, a delete for each row that it hits.",
        "DELETE FROM shop.stock WHERE warehouse = '<name>' AND product > 'cup'",
        (("shop.stock", "d"),) * 2,
    ),
    Step("A DELETE of one column.", "DELETE note FROM shop.orders WHERE id = <order>", (("shop.orders", "u"),)),
    Step("A DELETE of the row.", "DELETE FROM shop.orders WHERE id = <order>", (("shop.orders", "d"),)),
    Step(
        "The same key again: row_sequence goes on, (key, row_sequence) identifies an event permanently.",
        "INSERT INTO shop.orders (id, customer, status) VALUES (<order>, 'grace', 'new')",
        (("shop.orders", "c"),),
    ),
)


def steps(order: int = 7, name: str = "ada", ttl: int = TTL) -> list[Step]:
    """The story of an order and a customer that never were there before: a deletion would outlive the late writes.

    `ttl` in s is longer than a change takes, so that the row is there for a while before it expires.
    """
    an_hour_ago = int((time.time() - HOUR) * 1_000_000)
    told: list[Step] = []
    for step in STORY:
        words = {"<order>": str(order), "<name>": name, "<earlier>": str(an_hour_ago - len(told)), "<ttl>": str(ttl)}
        caption, statement = step.caption, step.statement
        for word, value in words.items():
            caption, statement = caption.replace(word, value), statement.replace(word, value)
        told.append(replace(step, caption=caption, statement=statement))
    return told


def tables_of(step: Step) -> tuple[str, ...]:
    """The tables to mark when nothing is to come: those that the statement names."""
    return tuple(table for table in shop.MARKED if f"shop.{table} " in step.statement)
