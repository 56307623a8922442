"""The demo's story: statements one at a time, each with the changes that must come out of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from local_stack import shop

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, what it shows, and what must come: (table, op) of each change, in any order."""

    caption: str
    statement: str
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
    Step("A DELETE of one column.", "DELETE note FROM shop.orders WHERE id = <order>", (("shop.orders", "u"),)),
    Step("A DELETE of the row.", "DELETE FROM shop.orders WHERE id = <order>", (("shop.orders", "d"),)),
    Step(
        "The same key again: row_sequence goes on, (key, row_sequence) names an event for ever.",
        "INSERT INTO shop.orders (id, customer, status) VALUES (<order>, 'grace', 'new')",
        (("shop.orders", "c"),),
    ),
)


def steps(order: int = 7, name: str = "ada") -> list[Step]:
    """The story of an order and a customer that never were there before: a deletion would outlive the late writes."""
    an_hour_ago = int((time.time() - HOUR) * 1_000_000)
    told: list[Step] = []
    for step in STORY:
        words = {"<order>": str(order), "<name>": name, "<earlier>": str(an_hour_ago - len(told))}
        statement = step.statement
        for word, value in words.items():
            statement = statement.replace(word, value)
        told.append(replace(step, statement=statement))
    return told


def tables_of(step: Step) -> tuple[str, ...]:
    """The tables to mark when nothing is to come: those that the statement names."""
    return tuple(table for table in shop.MARKED if f"shop.{table} " in step.statement)
