"""`python -m archive`, which is what spark-submit runs."""

from __future__ import annotations

from archive.cli import main

if __name__ == "__main__":
    main()
