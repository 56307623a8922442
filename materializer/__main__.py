"""`python -m materializer`, which is what spark-submit runs."""

from __future__ import annotations

from materializer.cli import main

main()
