"""The load as it runs: a live table of a few lines on a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Self

from rich.live import Live
from rich.table import Table

from dev.local_stack.clients.history import percentile

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from dev.local_stack.clients.history import History
    from dev.local_stack.demo.load import Load

REFRESH_SECONDS = 0.25
LINE_SECONDS = 4.0


class Summary:
    """Shows a load and what has come out; `first` is the history's length when the load began."""

    def __init__(self, console: Console, load: Load, history: History, first: int) -> None:
        self._console = console
        self._load = load
        self._history = history
        self._first = first
        self._start = time.monotonic()
        self._next = 0.0
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> Self:
        self._console.print()
        self._console.print(
            f"Now load for {self._load.seconds:.0f} s over three tables.", style="bold", highlight=False
        )
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._show()
        if self._live:
            self._live.stop()

    def refresh(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + (REFRESH_SECONDS if self._live else LINE_SECONDS)
            self._show()

    def _show(self) -> None:
        if self._live:
            self._live.update(self._table(), refresh=True)
        else:
            self._console.print(
                "  ".join(f"{name} {value}" for name, value in self._facts()), highlight=False, soft_wrap=True
            )

    def _table(self) -> Table:
        table = Table(show_header=False, box=None, padding=(0, 2))
        for name, value in self._facts():
            table.add_row(name, value)
        return table

    def _facts(self) -> list[tuple[str, str]]:
        latencies = self._history.latencies[self._first :]
        passed = time.monotonic() - self._start
        return [
            ("seconds", f"{passed:.0f}"),
            ("statements", f"{self._load.sent}"),
            ("changes out", f"{self._history.count}"),
            ("lag", f"{self._lag():.1f} s"),
            ("p50", f"{percentile(latencies, 0.5):.2f} s" if latencies else "-"),
            ("p99", f"{percentile(latencies, 0.99):.2f} s" if latencies else "-"),
        ]

    def _lag(self) -> float:
        """How much older the newest change seen is than the newest write."""
        return max(0.0, self._load.last_write - self._history.newest_write)
