"""`python -m warehouse`, which is what spark-submit runs."""

from __future__ import annotations

from warehouse.cli import main

if __name__ == "__main__":
    main()
