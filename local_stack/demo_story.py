"""The demo's story: statements one at a time, each with the changes that must come out of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

from local_stack import shop

HOUR = 3600


@dataclass(frozen=True, slots=True)
class Step:
    """A statement, what it shows, and what must come: (table, op) of each change, in any order."""

    caption: str
    statement: str
    changes: tuple[tuple[str, str], ...]


def steps() -> list[Step]:
    an_hour_ago = int((time.time() - HOUR) * 1_000_000)
    return [
        Step(
            "An INSERT. There was no row before.",
            "INSERT INTO shop.orders (id, customer, status, total, lines) VALUES (7, 'ada', 'new', 42.50, {'tea': 2})",
            (("shop.orders", "c"),),
        ),
        Step(
            "An UPDATE of one column. The log holds that column alone, the change the whole row before and after.",
            "UPDATE shop.orders SET status = 'paid' WHERE id = 7",
            (("shop.orders", "u"),),
        ),
        Step(
            "A late write: its timestamp is an hour old. It changes only what it still wins: note, not status.",
            f"UPDATE shop.orders USING TIMESTAMP {an_hour_ago} SET status = 'cancelled', note = 'gift' WHERE id = 7",  # noqa: S608 - a number
            (("shop.orders", "u"),),
        ),
        Step(
            "A late write that wins nothing.",
            f"UPDATE shop.orders USING TIMESTAMP {an_hour_ago - 1} SET status = 'lost', note = 'no gift' WHERE id = 7",  # noqa: S608 - a number
            (),
        ),
        Step(
            "A batch over two tables: one change in each.",
            "BEGIN BATCH"
            " INSERT INTO shop.stock (warehouse, product, amount, price) VALUES ('north', 'tea', 98, 4.25);"
            " INSERT INTO shop.customers (name, email, home, tags)"
            " VALUES ('ada', 'ada@example.org', {street: 'Rue 1', city: 'Lyon'}, {'new'}); "
            "APPLY BATCH",
            (("shop.stock", "c"), ("shop.customers", "c")),
        ),
        Step(
            "One element added to a set and one field of a user type changed. The log holds just these two cells.",
            "UPDATE shop.customers SET tags = tags + {'vip'}, home.city = 'Paris' WHERE name = 'ada'",
            (("shop.customers", "u"),),
        ),
        Step("A DELETE of one column.", "DELETE note FROM shop.orders WHERE id = 7", (("shop.orders", "u"),)),
        Step("A DELETE of the row.", "DELETE FROM shop.orders WHERE id = 7", (("shop.orders", "d"),)),
        Step(
            "The same key again: row_sequence goes on, (key, row_sequence) names an event for ever.",
            "INSERT INTO shop.orders (id, customer, status) VALUES (7, 'grace', 'new')",
            (("shop.orders", "c"),),
        ),
    ]


def tables_of(step: Step) -> tuple[str, ...]:
    """The tables to mark when nothing is to come: the statement names its table."""
    named = tuple(table for table in shop.MARKED if f"shop.{table} " in step.statement)
    assert named, step.statement
    return named
