"""The demo's load: random inserts, updates and deletes over the tables of `shop` at a steady rate."""

from __future__ import annotations

import datetime as dt
import random
import threading
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dev.local_stack.clients.cql import CqlClient

ORDERS = 1000
CUSTOMERS = 200
WAREHOUSES = ("north", "south", "east", "west")
PRODUCTS = 60
STATUSES = ("new", "paid", "packed", "sent", "returned")
TAGS = ("new", "vip", "slow", "club")
MOST_IN_FLIGHT = 64
TICK_SECONDS = 0.02

# Statement -> how often, and what makes its parameters.
Statements: TypeAlias = "Mapping[str, tuple[int, Callable[[random.Random], tuple[object, ...]]]]"

STATEMENTS: Statements = {
    "INSERT INTO shop.orders (id, customer, status, total, lines, placed) VALUES (?, ?, ?, ?, ?, ?)": (
        30,
        lambda pick: (_order(pick), _customer(pick), "new", _money(pick), _lines(pick), _moment(pick)),
    ),
    "UPDATE shop.orders SET status = ? WHERE id = ?": (25, lambda pick: (pick.choice(STATUSES), _order(pick))),
    "UPDATE shop.orders SET lines[?] = ? WHERE id = ?": (
        5,
        lambda pick: (_product(pick), pick.randint(1, 9), _order(pick)),
    ),
    "DELETE note, lines FROM shop.orders WHERE id = ?": (3, lambda pick: (_order(pick),)),
    "DELETE FROM shop.orders WHERE id = ?": (7, lambda pick: (_order(pick),)),
    "INSERT INTO shop.customers (name, email, tags, joined) VALUES (?, ?, ?, ?)": (
        6,
        lambda pick: (_customer(pick), f"{pick.randrange(10**6)}@example.org", {pick.choice(TAGS)}, _day(pick)),
    ),
    "UPDATE shop.customers SET tags = tags + ?, home.city = ? WHERE name = ?": (
        6,
        lambda pick: ({pick.choice(TAGS)}, pick.choice(("Lyon", "Paris", "Nice")), _customer(pick)),
    ),
    "DELETE FROM shop.customers WHERE name = ?": (2, lambda pick: (_customer(pick),)),
    "INSERT INTO shop.stock (warehouse, product, amount, price) VALUES (?, ?, ?, ?)": (
        8,
        lambda pick: (pick.choice(WAREHOUSES), _product(pick), pick.randint(0, 500), round(pick.uniform(1, 99), 2)),
    ),
    "UPDATE shop.stock SET amount = ? WHERE warehouse = ? AND product = ?": (
        6,
        lambda pick: (pick.randint(0, 500), pick.choice(WAREHOUSES), _product(pick)),
    ),
    "DELETE FROM shop.stock WHERE warehouse = ? AND product = ?": (
        2,
        lambda pick: (pick.choice(WAREHOUSES), _product(pick)),
    ),
}


class Load:
    """Writes from a thread of its own: `rate` statements a second for `seconds`, at most 64 unanswered at once."""

    def __init__(
        self, client: CqlClient, rate: float, seconds: float, seed: int = 1, statements: Statements = STATEMENTS
    ) -> None:
        self._client = client
        self._statements = statements
        self._rate = rate
        self.seconds = seconds
        self._pick = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._room = threading.Semaphore(MOST_IN_FLIGHT)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.write_until_stopped, name="load", daemon=True)
        self.sent = 0
        self.error: Exception | None = None
        self.last_write = 0.0

    def start(self) -> None:
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def wait(self) -> None:
        """Returns when its time is over and every statement is answered."""
        self._thread.join()

    def stop(self) -> None:
        """Ends it early; returns when every statement is answered."""
        self._stop.set()
        self._thread.join()

    def write_until_stopped(self) -> None:
        try:
            choices = [(self._client.prepare(text), weight, make) for text, (weight, make) in self._statements.items()]
            self._write(choices)
        except Exception as error:  # noqa: BLE001 - shown by the main thread
            self.remember_error(error)
        for _ in range(MOST_IN_FLIGHT):
            self._room.acquire()

    def _write(self, choices: list[tuple[Any, int, Callable[[random.Random], tuple[object, ...]]]]) -> None:
        weights = [weight for _, weight, _ in choices]
        start = time.monotonic()
        while not self._stop.is_set() and self.error is None and (passed := time.monotonic() - start) < self.seconds:
            for _ in range(int(passed * self._rate) - self.sent):
                [(prepared, _, make)] = self._pick.choices(choices, weights)
                self._room.acquire()
                self.last_write = time.time()
                self._client.submit(prepared, make(self._pick), self._answered)
                self.sent += 1
            time.sleep(TICK_SECONDS)

    def _answered(self, error: Exception | None) -> None:
        if error is not None:
            self.remember_error(error)
        self._room.release()

    def remember_error(self, error: Exception) -> None:
        with self._lock:
            self.error = self.error or error


def _order(pick: random.Random) -> int:
    return pick.randint(100, 100 + ORDERS)


def _customer(pick: random.Random) -> str:
    return f"customer {pick.randrange(CUSTOMERS)}"


def _product(pick: random.Random) -> str:
    return f"product {pick.randrange(PRODUCTS)}"


def _money(pick: random.Random) -> Decimal:
    return Decimal(pick.randint(-100, 99_999)).scaleb(-2)


def _lines(pick: random.Random) -> dict[str, int]:
    return {_product(pick): pick.randint(1, 9) for _ in range(pick.randrange(4))}


def _moment(pick: random.Random) -> dt.datetime:
    return dt.datetime(2026, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=pick.randrange(10**9))


def _day(pick: random.Random) -> dt.date:
    return dt.date(2020, 1, 1) + dt.timedelta(days=pick.randrange(2000))
